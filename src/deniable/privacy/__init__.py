"""Differential privacy: noise, composition, calibration, the plan and the ledger of a run."""
