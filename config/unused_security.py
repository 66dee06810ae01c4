"""Kafka's keys for authentication that odradek does not use.

key_table.py explains the form of the table.
"""

TABLE = """\
principal.builder.class CLASS \
    org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder
    Java class that derives the principal of a connection; another is refused at the start.
security.providers STRING null
    Java classes that provide security algorithms.
sasl.mechanism.inter.broker.protocol STRING GSSAPI
    SASL mechanism between brokers.
sasl.client.callback.handler.class CLASS null
    Java class that handles SASL client callbacks.
sasl.login.class CLASS null
    Java class for the login of this node.
sasl.login.callback.handler.class CLASS null
    Java class that handles callbacks of the login of this node.
sasl.login.connect.timeout.ms INT null
    Connection timeout of the token provider.
sasl.login.read.timeout.ms INT null
    Read timeout of the token provider.
sasl.login.retry.backoff.ms LONG 100
    Initial delay before a login is retried.
sasl.login.retry.backoff.max.ms LONG 10000
    Maximum delay before a login is retried.
sasl.login.refresh.window.factor DOUBLE 0.8
    Share of a login's lifetime after which it is renewed.
sasl.login.refresh.window.jitter DOUBLE 0.05
    Random jitter of that share.
sasl.login.refresh.min.period.seconds SHORT 60
    Minimum time before a login is renewed.
sasl.login.refresh.buffer.seconds SHORT 300
    Minimum time between the renewal and the end of a login.
sasl.kerberos.service.name STRING null
    Kerberos name of the service.
sasl.kerberos.kinit.cmd STRING /usr/bin/kinit
    Path of kinit.
sasl.kerberos.ticket.renew.window.factor DOUBLE 0.8
    Share of a ticket's lifetime after which it is renewed.
sasl.kerberos.ticket.renew.jitter DOUBLE 0.05
    Random jitter of that share.
sasl.kerberos.min.time.before.relogin LONG 60000
    Minimum time between two Kerberos logins.
sasl.kerberos.principal.to.local.rules LIST DEFAULT
    Rules that map a Kerberos name to a user name.
sasl.oauthbearer.jwt.retriever.class CLASS \
    org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever
    Java class that retrieves tokens.
sasl.oauthbearer.scope STRING null
    Scope that is requested with a token.
sasl.oauthbearer.client.credentials.client.id STRING null
    Client id for the client-credentials grant.
sasl.oauthbearer.client.credentials.client.secret PASSWORD null
    Client secret for the client-credentials grant.
sasl.oauthbearer.assertion.algorithm STRING RS256 es256|rs256 any-case
    Algorithm that signs assertions.
sasl.oauthbearer.assertion.claim.aud STRING null
    Audience of assertions.
sasl.oauthbearer.assertion.claim.exp.seconds INT 300 0..86400
    Lifetime of assertions.
sasl.oauthbearer.assertion.claim.iss STRING null
    Issuer of assertions.
sasl.oauthbearer.assertion.claim.jti.include BOOLEAN false
    Whether assertions have a unique id.
sasl.oauthbearer.assertion.claim.nbf.seconds INT 60 0..3600
    How long before the present assertions become valid.
sasl.oauthbearer.assertion.claim.sub STRING null
    Subject of assertions.
sasl.oauthbearer.assertion.file STRING null
    File with an existing assertion.
sasl.oauthbearer.assertion.private.key.file STRING null
    File with the private key that signs assertions.
sasl.oauthbearer.assertion.private.key.passphrase PASSWORD null
    Passphrase of that key.
sasl.oauthbearer.assertion.template.file STRING null
    File with the claims and headers of assertions.
sasl.oauthbearer.token.endpoint.url STRING null
    URL from which tokens are requested.
"""
