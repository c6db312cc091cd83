//! Updater (placeholder).
