"""Certificates and rules of TLS listeners; broker/network has the connections.

Reading order: listener_tls (the whole of one listener), tls_listeners (all, and their reload); then
stores, java_key_store, pem, contexts, cipher_suites; then names, principal_mapping. `cryptography`
is imported only if a listener speaks TLS.
"""
