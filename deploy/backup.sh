#!/bin/sh
# One backup now and one every day at the same time; older ones than BACKUP_DAYS are deleted.
set -eu
folder=${BACKUP_TO:-/backups}
study=${BACKUP_STUDY:-/studies/study}
while true; do
  file="$folder/$(basename "$study")-$(date -u +%Y-%m-%dT%H%M%SZ).zip"
  if dialometer backup "$study" --to "$file"; then
    find "$folder" -name '*.zip' -mtime "+${BACKUP_DAYS:-14}" -delete
  else
    echo "the backup failed; the older ones are kept" >&2
  fi
  sleep 86400
done
