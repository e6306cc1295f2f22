"""The registry of cities, filled in the background while the module is loaded."""
import threading

CITIES = {}


def load():
    import cities

    CITIES.update(cities.read())


loader = threading.Thread(target=load, name="city-loader")
loader.start()
loader.join()  # CULPRIT
