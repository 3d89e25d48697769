"""Workers of Ray that die in the middle of their work."""

import os
import signal
import threading
import time


class OneWorkerDies:
    """An engine on Ray whose first worker is killed as soon as it has begun its part."""

    def __init__(self, engine, folder):
        self.engine, self.folder = engine, folder

    def run(self, work, shared, parts):
        folder = str(self.folder)
        killed = self.folder.with_name(f"{self.folder.name}-killed")

        def noted(shared, part):  # in here, so that Ray sends it along: its workers cannot import this module
            import os
            import time
            import uuid
            from pathlib import Path

            (Path(folder) / f"{os.getpid()}-{uuid.uuid4().hex}").touch()
            while not killed.exists():  # nobody gets ahead of the killing, however late it comes
                time.sleep(0.02)
            return work(shared, part)

        threading.Thread(target=self._kill_the_first, args=(killed,), daemon=True).start()
        return self.engine.run(noted, shared, parts)

    def _kill_the_first(self, killed):
        while not (begun := list(self.folder.iterdir())):
            time.sleep(0.02)
        os.kill(int(begun[0].name.split("-")[0]), signal.SIGKILL)
        killed.touch()

    def n_begun(self):
        """How many parts were begun, those of the dead worker included."""
        return len(list(self.folder.iterdir()))
