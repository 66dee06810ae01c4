"""Kafka's keys for authentication, TLS and authorization. odradek does not use them yet.

key_table.py explains the form of the table.
"""

TABLE = """\
authorizer.class.name STRING ""
    Java class that authorizes requests.
principal.builder.class CLASS \
    org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder
    Java class that derives the principal of a connection.
security.providers STRING null
    Java classes that provide security algorithms.
connections.max.reauth.ms LONG 0
    How long a SASL login is valid; 0: as long as the connection.
delegation.token.secret.key PASSWORD null
    Key that signs delegation tokens.
delegation.token.max.lifetime.ms LONG 604800000 1..
    Maximum lifetime of a delegation token, including renewals.
delegation.token.expiry.time.ms LONG 86400000 1..
    Lifetime of a delegation token without renewal.
delegation.token.expiry.check.interval.ms LONG 3600000 1..
    How often expired delegation tokens are removed.
ssl.client.auth STRING none required|requested|none
    Whether TLS clients must, may or need not present a certificate.
ssl.principal.mapping.rules STRING DEFAULT
    Rules that map the name in a certificate to a user name.
ssl.allow.dn.changes BOOLEAN false
    Whether a renewed certificate may have another distinguished name.
ssl.allow.san.changes BOOLEAN false
    Whether a renewed certificate may have other alternative names.
ssl.protocol STRING TLSv1.3
    TLS version of the SSLContext.
ssl.provider STRING null
    Name of the JVM's TLS provider.
ssl.enabled.protocols LIST TLSv1.2,TLSv1.3
    Enabled TLS versions.
ssl.cipher.suites LIST ""
    Enabled cipher suites; empty: the defaults.
ssl.keystore.type STRING JKS
    Format of the key store.
ssl.keystore.location STRING null
    File of the key store.
ssl.keystore.password PASSWORD null
    Password of the key store's file.
ssl.key.password PASSWORD null
    Password of the private key.
ssl.keystore.key PASSWORD null
    Private key, as PEM text.
ssl.keystore.certificate.chain PASSWORD null
    Certificate chain, as PEM text.
ssl.truststore.type STRING JKS
    Format of the trust store.
ssl.truststore.location STRING null
    File of the trust store.
ssl.truststore.password PASSWORD null
    Password of the trust store's file.
ssl.truststore.certificates PASSWORD null
    Trusted certificates, as PEM text.
ssl.keymanager.algorithm STRING SunX509
    Algorithm of the JVM's key manager.
ssl.trustmanager.algorithm STRING PKIX
    Algorithm of the JVM's trust manager.
ssl.endpoint.identification.algorithm STRING https
    How a peer's host name is verified.
ssl.secure.random.implementation STRING null
    The JVM's random source for TLS.
ssl.engine.factory.class CLASS null
    Java class that creates TLS engines.
sasl.enabled.mechanisms LIST GSSAPI
    SASL mechanisms that clients may use.
sasl.mechanism.inter.broker.protocol STRING GSSAPI
    SASL mechanism between brokers.
sasl.jaas.config PASSWORD null
    Login module and its options.
sasl.server.max.receive.size INT 524288
    Maximum size of a request before a client has logged in.
sasl.server.callback.handler.class CLASS null
    Java class that handles SASL server callbacks.
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
sasl.oauthbearer.jwt.validator.class CLASS \
    org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator
    Java class that validates tokens.
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
sasl.oauthbearer.scope.claim.name STRING scope
    Claim that holds the scope.
sasl.oauthbearer.sub.claim.name STRING sub
    Claim that holds the subject.
sasl.oauthbearer.token.endpoint.url STRING null
    URL from which tokens are requested.
sasl.oauthbearer.jwks.endpoint.url STRING null
    URL of the issuer's keys.
sasl.oauthbearer.jwks.endpoint.refresh.ms LONG 3600000
    How often the issuer's keys are refreshed.
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms LONG 100
    Initial delay before that is retried.
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms LONG 10000
    Maximum delay before that is retried.
sasl.oauthbearer.clock.skew.seconds INT 30
    Tolerated clock difference to a token's issuer.
sasl.oauthbearer.expected.audience LIST ""
    Audiences that a token must contain.
sasl.oauthbearer.expected.issuer STRING null
    Issuer that a token must contain.
"""
