"""Where bytes come from and go to: filesystems, engines that run tasks, staged directories."""
