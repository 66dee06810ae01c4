"""Kafka's keys for authentication, TLS and authorization, not used yet.

The form is explained in key_table.py.
"""

TABLE = """\
authorizer.class.name STRING ""
    Java class that decides who may do what.
principal.builder.class CLASS \
    org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder
    Java class that names the caller.
security.providers STRING null
    Java classes that bring security algorithms.
connections.max.reauth.ms LONG 0
    How long a SASL login lasts; 0: as long as the connection.
delegation.token.secret.key PASSWORD null
    Key that signs delegation tokens.
delegation.token.max.lifetime.ms LONG 604800000 1..
    Longest life of a delegation token, renewals included.
delegation.token.expiry.time.ms LONG 86400000 1..
    Life of a delegation token without renewal.
delegation.token.expiry.check.interval.ms LONG 3600000 1..
    How often expired delegation tokens are removed.
ssl.client.auth STRING none required|requested|none
    Whether TLS clients must, may or need not show a certificate.
ssl.principal.mapping.rules STRING DEFAULT
    How a certificate's name becomes a user's.
ssl.allow.dn.changes BOOLEAN false
    Whether a renewed certificate may change its name.
ssl.allow.san.changes BOOLEAN false
    Whether a renewed certificate may change its alternative names.
ssl.protocol STRING TLSv1.3
    TLS version that contexts are made for.
ssl.provider STRING null
    Name of the JVM's TLS provider.
ssl.enabled.protocols LIST TLSv1.2,TLSv1.3
    TLS versions that are spoken.
ssl.cipher.suites LIST ""
    Cipher suites that are offered; empty: the defaults.
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
    The JVM's key manager.
ssl.trustmanager.algorithm STRING PKIX
    The JVM's trust manager.
ssl.endpoint.identification.algorithm STRING https
    How a peer's host name is checked.
ssl.secure.random.implementation STRING null
    The JVM's random source for TLS.
ssl.engine.factory.class CLASS null
    Java class that makes TLS engines.
sasl.enabled.mechanisms LIST GSSAPI
    SASL mechanisms that clients may use.
sasl.mechanism.inter.broker.protocol STRING GSSAPI
    SASL mechanism between brokers.
sasl.jaas.config PASSWORD null
    Login module and its options.
sasl.server.max.receive.size INT 524288
    Largest frame before a client has logged in.
sasl.server.callback.handler.class CLASS null
    Java class that checks logins.
sasl.client.callback.handler.class CLASS null
    Java class that answers login questions.
sasl.login.class CLASS null
    Java class that logs this node in.
sasl.login.callback.handler.class CLASS null
    Java class that answers when this node logs in.
sasl.login.connect.timeout.ms INT null
    Connection timeout of the token provider.
sasl.login.read.timeout.ms INT null
    Read timeout of the token provider.
sasl.login.retry.backoff.ms LONG 100
    First pause before a login is tried again.
sasl.login.retry.backoff.max.ms LONG 10000
    Longest pause before a login is tried again.
sasl.login.refresh.window.factor DOUBLE 0.8
    Share of a login's life after which it is renewed.
sasl.login.refresh.window.jitter DOUBLE 0.05
    Randomness of that share.
sasl.login.refresh.min.period.seconds SHORT 60
    Least time before a login is renewed.
sasl.login.refresh.buffer.seconds SHORT 300
    Time kept free before a login ends.
sasl.kerberos.service.name STRING null
    Kerberos name of the service.
sasl.kerberos.kinit.cmd STRING /usr/bin/kinit
    Path of kinit.
sasl.kerberos.ticket.renew.window.factor DOUBLE 0.8
    Share of a ticket's life after which it is renewed.
sasl.kerberos.ticket.renew.jitter DOUBLE 0.05
    Randomness of that share.
sasl.kerberos.min.time.before.relogin LONG 60000
    Least time between two Kerberos logins.
sasl.kerberos.principal.to.local.rules LIST DEFAULT
    How a Kerberos name becomes a user's.
sasl.oauthbearer.jwt.retriever.class CLASS \
    org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever
    Java class that gets tokens.
sasl.oauthbearer.jwt.validator.class CLASS \
    org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator
    Java class that checks tokens.
sasl.oauthbearer.scope STRING null
    Scope asked for with a token.
sasl.oauthbearer.client.credentials.client.id STRING null
    Client id for the client-credentials grant.
sasl.oauthbearer.client.credentials.client.secret PASSWORD null
    Client secret for the client-credentials grant.
sasl.oauthbearer.assertion.algorithm STRING RS256 es256|rs256 any-case
    Algorithm that signs assertions.
sasl.oauthbearer.assertion.claim.aud STRING null
    Audience of assertions.
sasl.oauthbearer.assertion.claim.exp.seconds INT 300 0..86400
    Life of assertions.
sasl.oauthbearer.assertion.claim.iss STRING null
    Issuer of assertions.
sasl.oauthbearer.assertion.claim.jti.include BOOLEAN false
    Whether assertions carry an id of their own.
sasl.oauthbearer.assertion.claim.nbf.seconds INT 60 0..3600
    How long before now assertions are valid.
sasl.oauthbearer.assertion.claim.sub STRING null
    Subject of assertions.
sasl.oauthbearer.assertion.file STRING null
    File of a ready-made assertion.
sasl.oauthbearer.assertion.private.key.file STRING null
    File of the key that signs assertions.
sasl.oauthbearer.assertion.private.key.passphrase PASSWORD null
    Passphrase of that key.
sasl.oauthbearer.assertion.template.file STRING null
    File of claims and headers for assertions.
sasl.oauthbearer.scope.claim.name STRING scope
    Claim that holds the scope.
sasl.oauthbearer.sub.claim.name STRING sub
    Claim that holds the subject.
sasl.oauthbearer.token.endpoint.url STRING null
    Where tokens are got.
sasl.oauthbearer.jwks.endpoint.url STRING null
    Where the issuer's keys are got.
sasl.oauthbearer.jwks.endpoint.refresh.ms LONG 3600000
    How often the issuer's keys are got again.
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms LONG 100
    First pause before they are tried again.
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms LONG 10000
    Longest pause before they are tried again.
sasl.oauthbearer.clock.skew.seconds INT 30
    How far a token's clock may be off.
sasl.oauthbearer.expected.audience LIST ""
    Audiences that tokens must name.
sasl.oauthbearer.expected.issuer STRING null
    Issuer that tokens must name.
"""
