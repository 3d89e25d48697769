"""python -m bench [NAME …]: speed beside peers, as ratios in one run. Each file of this folder is one bench."""

import importlib
import pkgutil
import sys

import bench


def main() -> None:
    known = [
        module.name
        for module in pkgutil.iter_modules(bench.__path__)
        if not (module.ispkg or module.name.startswith("_"))
    ]
    wanted = sys.argv[1:] or known
    for name in wanted:
        if name not in known:
            sys.exit(f"there is no bench '{name}'; known: {', '.join(known)}")
        print(f"\n## {name}\n", flush=True)
        importlib.import_module(f"bench.{name}").main()


main()
