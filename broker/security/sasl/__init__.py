"""SASL: how clients log in on the listeners SASL_PLAINTEXT and SASL_SSL.

To be read in this order: exchange (what a mechanism is), plain, scram with scram_credential,
scram_credentials and token_credentials, oauthbearer with unsecured_tokens, signed_tokens,
token_settings and issuer_keys, authenticator (the state machine of a connection), failed_logins,
login_mechanisms, login_listeners.
"""
