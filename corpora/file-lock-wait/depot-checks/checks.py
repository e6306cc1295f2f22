"""Checks of the depot's stock."""
import sqlite3


def test_stock(database):
    connection = sqlite3.connect(database)
    assert connection.execute("SELECT COUNT(*) FROM seeds").fetchone() == (2,)


def test_units():
    assert 12 * 25 == 300


def test_names(recorder):
    recorder.put("names")
    assert sorted(["vetch", "clover"]) == ["clover", "vetch"]


def test_weights(database):
    connection = sqlite3.connect(database)
    assert connection.execute("SELECT SUM(grams) FROM seeds").fetchone() == (750,)
