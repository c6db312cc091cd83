//! Writes the directives of a test from the output of its commands.
