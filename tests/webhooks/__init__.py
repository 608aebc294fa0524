"""Signed deliveries to customers' endpoints."""
