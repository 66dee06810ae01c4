"""Keys of delegation tokens (KIP-48)."""

from .key import KeyModel, Long, OptionalPassword, key


class DelegationTokenKeys(KeyModel):
    """Kafka: DelegationTokenManagerConfigs."""

    delegation_token_secret_key: OptionalPassword = key(
        None, "Key that makes delegation tokens from their ids; unset or empty: tokens are refused."
    )
    delegation_token_max_lifetime_ms: Long = key(
        604_800_000, "Maximum lifetime of a delegation token, including renewals.", ge=1
    )
    delegation_token_expiry_time_ms: Long = key(
        86_400_000, "Lifetime of a delegation token without renewal.", ge=1
    )
    delegation_token_expiry_check_interval_ms: Long = key(
        3_600_000, "How often expired delegation tokens are removed.", ge=1
    )
