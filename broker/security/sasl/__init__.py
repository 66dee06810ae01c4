"""SASL: how clients log in on the listeners SASL_PLAINTEXT and SASL_SSL.

To be read in this order: exchange (what a mechanism is), plain, scram, oauthbearer with
unsecured_tokens, signed_tokens and issuer_keys, authenticator (the state machine of a connection),
token_credentials, scram_credentials, login_listeners (the mechanisms of all listeners).
"""
