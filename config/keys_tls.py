"""Keys of TLS, which each listener can have for itself (listener_settings.py).

key_table.py explains the form of the table. Kafka: SslConfigs, BrokerSecurityConfigs.
"""

TABLE = """\
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
"""
