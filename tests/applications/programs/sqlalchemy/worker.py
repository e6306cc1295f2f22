import os
import sys
import threading
import time
from pathlib import Path

from sqlalchemy import create_engine, text
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    amount: Mapped[int]


def poll(engine):
    while True:
        with Session(engine) as session:
            print(session.query(Order).filter(Order.amount > 10).all())
        Path(os.environ["READY"]).touch()
        time.sleep(2)


def audit(engine):
    with Session(engine) as session:
        session.execute(text("SELECT 1"))  # HANG pool
        session.commit()


def nested(engine):
    with Session(engine) as session:
        session.get(Order, 1).amount = 5
        session.flush()
        helper = threading.Thread(target=audit, args=(engine,))
        helper.start()
        Path(os.environ["READY"]).touch()
        helper.join()  # HANG pool
        session.commit()


def rows(engine):
    with Session(engine) as first, Session(engine) as second:
        first.get(Order, 1).amount = 1
        first.flush()
        second.get(Order, 1).amount = 2
        Path(os.environ["READY"]).touch()
        second.commit()  # HANG row
        first.commit()


size = 1 if sys.argv[1] == "pool" else 5
engine = create_engine(os.environ["DATABASE_URL"], pool_size=size, max_overflow=0, pool_timeout=3600)
Base.metadata.create_all(engine)
with Session(engine) as session:
    session.add(Order(id=1, amount=0))
    session.commit()
{"idle": poll, "pool": nested, "row": rows}[sys.argv[1]](engine)
