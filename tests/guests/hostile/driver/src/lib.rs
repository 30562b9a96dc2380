//! A driver that does whatever a driver should not, short of network and
//! buckets: those are imports that the declaration has to name, and have drivers
//! of their own.

hostile_common::driver!(|_, _| None);
