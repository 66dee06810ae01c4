"""Keys of SASL, which each listener can have for itself (listener_settings.py).

key_table.py explains the form of the table. Kafka: SaslConfigs, BrokerSecurityConfigs.
"""

TABLE = """\
connections.max.reauth.ms LONG 0
    How long a SASL login is valid; 0: as long as the connection.
sasl.enabled.mechanisms LIST GSSAPI
    SASL mechanisms that clients may use.
sasl.jaas.config PASSWORD null
    Login module and its options.
sasl.server.max.receive.size INT 524288
    Maximum size of a request before a client has logged in.
sasl.server.callback.handler.class CLASS null
    Java class that handles SASL server callbacks.
sasl.oauthbearer.jwt.validator.class CLASS \
    org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator
    Java class that validates tokens.
sasl.oauthbearer.scope.claim.name STRING scope
    Claim that holds the scope.
sasl.oauthbearer.sub.claim.name STRING sub
    Claim that holds the subject.
sasl.oauthbearer.jwks.endpoint.url STRING null
    URL of the issuer's keys.
sasl.oauthbearer.jwks.endpoint.refresh.ms LONG 3600000
    How often the issuer's keys are refreshed.
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms LONG 100
    Initial delay before the issuer's keys are asked for again after a failure.
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms LONG 10000
    Maximum delay before the issuer's keys are asked for again after a failure.
sasl.oauthbearer.clock.skew.seconds INT 30
    Tolerated clock difference to a token's issuer.
sasl.oauthbearer.expected.audience LIST ""
    Audiences that a token must contain.
sasl.oauthbearer.expected.issuer STRING null
    Issuer that a token must contain.
sasl.oauthbearer.allow.unverified.audience BOOLEAN false
    Whether tokens for any audience are accepted if none is expected.
sasl.oauthbearer.allow.unverified.issuer BOOLEAN false
    Whether tokens of any issuer are accepted if none is expected.
"""
