from sqlalchemy import create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    pass


class City(Base):
    __tablename__ = "city"
    name: Mapped[str] = mapped_column(primary_key=True)
    people: Mapped[int]


engine = create_engine("sqlite:///out/cities.db")
Base.metadata.drop_all(engine)
Base.metadata.create_all(engine)
with Session(engine) as session:
    session.add_all([City(name="Graz", people=300), City(name="Linz", people=210)])
    session.commit()
with Session(engine) as session:
    print([(c.name, c.people) for c in session.scalars(select(City).order_by(City.people))])
