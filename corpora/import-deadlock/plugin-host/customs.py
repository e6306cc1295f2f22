"""Duties by weight."""


def duty(weight):
    return 0.5 * weight
