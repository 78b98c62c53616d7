"""Reading and writing bytes: filesystems, engines that run tasks, staged directories."""
