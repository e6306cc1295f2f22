"""The order in which the plugins come up."""
import threading

CARRIER_IS_THERE = threading.Event()
TARIFFS_ARE_LOADING = threading.Event()
