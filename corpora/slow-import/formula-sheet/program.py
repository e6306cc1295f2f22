"""A formula sheet: everything in SymPy that can stand in a formula, by name, for the completion in the editor."""
import importlib
import pkgutil
import sys
import tempfile


class Sheet:
    def __init__(self):
        self.names = {}
        self.skipped = []

    def add(self, module):
        for name, value in vars(module).items():
            if isinstance(value, type) and not name.startswith("_"):
                self.names.setdefault(name, module.__name__)

    def load(self, package):
        root = importlib.import_module(package)  # CULPRIT
        self.add(root)
        for info in pkgutil.walk_packages(root.__path__, package + ".", onerror=self.skipped.append):
            if info.name.endswith(("__main__", ".conftest")):
                continue
            try:
                self.add(importlib.import_module(info.name))  # CULPRIT
            except Exception:
                self.skipped.append(info.name)


def main():
    sys.pycache_prefix = tempfile.mkdtemp(prefix="sheet")  # CULPRIT
    sheet = Sheet()
    print("ready", flush=True)
    sheet.load("sympy")
    print("%d names, %d modules skipped" % (len(sheet.names), len(sheet.skipped)))


if __name__ == "__main__":
    main()
