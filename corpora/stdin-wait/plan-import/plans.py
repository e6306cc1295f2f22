"""The plans' tool: adds a plan to a store, and asks before it replaces one."""
import click

STORES = {"site-7": {"roof": 3, "garden": 1}}


@click.group()
def plans():
    """Plans of building sites."""


@plans.command()
@click.option("--store", required=True)
@click.option("--replace", is_flag=True)
@click.argument("plan")
def add(store, replace, plan):
    """Adds a plan."""
    known = STORES[store]
    if plan in known and not replace:
        click.confirm("%s has a plan of the %s, replace it" % (store, plan), abort=True)  # CULPRIT
    known[plan] = known.get(plan, 0) + 1


if __name__ == "__main__":
    plans()
