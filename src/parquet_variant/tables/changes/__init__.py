"""Row changes that all table formats share: delete, update, replace and merge, file by file, with retries."""
