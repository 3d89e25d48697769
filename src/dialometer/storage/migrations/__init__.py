"""The revisions of the database, run by :mod:`dialometer.storage.migrate`."""
