//! Rate of the profiles that each tenant sends.
//!
//! A tenant has a balance of bytes, which grows by its rate up to [`BURST`] seconds of it. A request is admitted while the balance is positive, and
//! then takes its bytes, also more than there are: size and encoding of a body are known only once it is there. In the long run a tenant therefore
//! sends no more than its rate, however large its requests are.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plumb_store::Tenant;

/// Largest balance, in seconds of the rate.
const BURST: f64 = 10.0;
/// Balances from which on full ones, which say nothing, are dropped.
const MANY: usize = 1024;
/// Most tenants whose refused bytes are counted by name.
const MOST_COUNTED: usize = 100;

/// Bytes that a tenant may send.
#[derive(Clone, Copy, Debug)]
struct Balance {
    bytes: f64,
    /// Bytes a second.
    rate: f64,
    at: Instant,
}

impl Balance {
    fn bytes_at(&self, now: Instant) -> f64 {
        let grown = self.bytes + self.rate * now.saturating_duration_since(self.at).as_secs_f64();
        grown.min(self.rate * BURST)
    }
}

/// Balances and counts of all tenants.
#[derive(Debug, Default)]
struct Accounts {
    balances: HashMap<Tenant, Balance>,
    /// Number of balances at which full ones are dropped next.
    sweep_at: usize,
    refused: HashMap<Tenant, u64>,
    /// Refused bytes of tenants that are not counted by name.
    refused_of_others: u64,
}

/// The rates of all tenants.
#[derive(Debug, Default)]
pub(crate) struct RateLimiter(Mutex<Accounts>);

impl RateLimiter {
    fn lock(&self) -> MutexGuard<'_, Accounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a tenant with this rate, in bytes a second, may send a request; otherwise the time until it may.
    pub fn admit(&self, tenant: &Tenant, rate: u64, now: Instant) -> Result<(), Duration> {
        let bytes = self.lock().balance(tenant, rate, now).bytes;
        // Below a byte, the rest of a division would be waited for again.
        if bytes >= 1.0 {
            return Ok(());
        }
        let wait = (1.0 - bytes) / rate as f64;
        Err(Duration::try_from_secs_f64(wait).unwrap_or(Duration::MAX))
    }

    /// Takes the bytes of a request that was admitted.
    pub fn take(&self, tenant: &Tenant, rate: u64, bytes: u64, now: Instant) {
        self.lock().balance(tenant, rate, now).bytes -= bytes as f64;
    }

    /// Counts the bytes of a request that was refused.
    pub fn refused(&self, tenant: &Tenant, bytes: u64) {
        let mut accounts = self.lock();
        let is_counted = accounts.refused.len() < MOST_COUNTED || accounts.refused.contains_key(tenant);
        let count = match is_counted {
            true => accounts.refused.entry(tenant.clone()).or_default(),
            false => &mut accounts.refused_of_others,
        };
        *count = count.saturating_add(bytes);
    }

    /// Refused bytes by tenant, and those of all tenants that are not counted by name.
    pub fn refused_bytes(&self) -> (Vec<(Tenant, u64)>, u64) {
        let accounts = self.lock();
        let by_tenant = accounts.refused.iter().map(|(tenant, bytes)| (tenant.clone(), *bytes));
        (by_tenant.collect(), accounts.refused_of_others)
    }
}

impl Accounts {
    /// The balance of a tenant at this time. A new one is full.
    fn balance(&mut self, tenant: &Tenant, rate: u64, now: Instant) -> &mut Balance {
        if !self.balances.contains_key(tenant) && self.balances.len() >= self.sweep_at.max(MANY) {
            self.balances.retain(|_, one| one.bytes_at(now) < one.rate * BURST);
            self.sweep_at = 2 * self.balances.len();
        }
        let rate = rate as f64;
        let balance =
            self.balances.entry(tenant.clone()).or_insert(Balance { bytes: rate * BURST, rate, at: now });
        let bytes = balance.bytes_at(now).min(rate * BURST);
        *balance = Balance { bytes, rate, at: now };
        balance
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    fn tenant(name: &str) -> Tenant {
        Tenant::new(name).unwrap()
    }

    #[test]
    fn a_tenant_sends_its_rate_in_the_long_run() {
        let (limiter, shop, start) = (RateLimiter::default(), tenant("shop"), Instant::now());
        let mut sent = 0;
        // Ten requests a second, of up to three seconds of the rate, for a thousand seconds.
        for step in 0..10_000_u64 {
            let now = start + Duration::from_millis(100) * step as u32;
            if limiter.admit(&shop, 1000, now).is_ok() {
                let bytes = 1 + step * 7919 % 3000;
                limiter.take(&shop, 1000, bytes, now);
                sent += bytes;
            }
        }
        assert!((1_000_000..=1_013_000).contains(&sent), "{sent}");
    }

    #[test]
    fn a_refused_tenant_is_told_when_it_may_send() {
        let (limiter, shop, now) = (RateLimiter::default(), tenant("shop"), Instant::now());
        assert_eq!(limiter.admit(&shop, 1000, now), Ok(()));
        limiter.take(&shop, 1000, 12_000, now);
        let wait = limiter.admit(&shop, 1000, now).unwrap_err();
        assert!(wait > Duration::from_secs(2) && wait < Duration::from_millis(2002), "{wait:?}");
        assert!(limiter.admit(&shop, 1000, now + wait - Duration::from_millis(10)).is_err());
        assert_eq!(limiter.admit(&shop, 1000, now + wait + Duration::from_millis(1)), Ok(()));
        assert_eq!(limiter.admit(&tenant("mail"), 1000, now), Ok(()));
        // A higher rate counts from the next request on.
        let news = tenant("news");
        limiter.take(&news, 1000, 12_000, now);
        assert!(limiter.admit(&news, 10_000, now + Duration::from_millis(100)).is_err());
        assert_eq!(limiter.admit(&news, 10_000, now + Duration::from_millis(300)), Ok(()));
    }

    #[test]
    fn tenants_are_bounded() {
        let (limiter, start) = (RateLimiter::default(), Instant::now());
        for number in 0..100_000_u64 {
            let (one, now) = (tenant(&number.to_string()), start + Duration::from_millis(10) * number as u32);
            limiter.take(&one, 1000, 1000, now);
            limiter.refused(&one, 7);
        }
        assert!(limiter.lock().balances.len() <= 2 * MANY);
        let (by_tenant, others) = limiter.refused_bytes();
        assert_eq!((by_tenant.len(), others), (MOST_COUNTED, 7 * (100_000 - MOST_COUNTED as u64)));
    }
}
