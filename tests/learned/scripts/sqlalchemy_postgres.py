import json
import sys

from sqlalchemy import String, create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    pass


class City(Base):
    __tablename__ = "cities"
    __table_args__ = ({"prefixes": ["TEMPORARY"]},)
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(40))


port = json.loads(sys.argv[1])["postgres"]
engine = create_engine(f"postgresql+psycopg://tester@127.0.0.1:{port}/postgres")
with engine.connect() as connection, Session(connection) as session:
    Base.metadata.create_all(connection)
    session.add_all([City(name="Graz"), City(name="Linz")])
    session.flush()
    print(session.scalars(select(City.name).order_by(City.name)).all())
