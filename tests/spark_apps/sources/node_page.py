"""A page of node exporter 1.8: a host with two disks, a RAID of them, and pseudo file systems."""

from __future__ import annotations

GIB = 2**30
BOOTED_AT = 1_795_000_000


def node_page(*, busy_seconds: float = 0, available_gib: float = 2, data_available_gib: float = 20) -> str:
    """The page so many seconds later; meanwhile one of two processors was busy and one disk read 1 MiB/s."""
    mib = busy_seconds * 2**20
    return f"""# HELP node_boot_time_seconds Node boot time, in unixtime.
# TYPE node_boot_time_seconds gauge
node_boot_time_seconds {BOOTED_AT:.9e}
# HELP node_cpu_seconds_total Seconds the CPUs spent in each mode.
# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{{cpu="0",mode="idle"}} {1000 + busy_seconds / 2}
node_cpu_seconds_total{{cpu="0",mode="iowait"}} {10 + busy_seconds / 2}
node_cpu_seconds_total{{cpu="0",mode="user"}} 50
node_cpu_seconds_total{{cpu="1",mode="idle"}} 500
node_cpu_seconds_total{{cpu="1",mode="iowait"}} 0
node_cpu_seconds_total{{cpu="1",mode="user"}} {100 + busy_seconds * 3 / 4}
node_cpu_seconds_total{{cpu="1",mode="steal"}} {busy_seconds / 4}
node_cpu_guest_seconds_total{{cpu="1",mode="user"}} 7
# TYPE node_disk_io_time_seconds_total counter
node_disk_io_time_seconds_total{{device="md0"}} {9 + busy_seconds}
node_disk_io_time_seconds_total{{device="nvme0n1"}} {9 + busy_seconds / 4}
node_disk_io_time_seconds_total{{device="nvme1n1"}} 9
# TYPE node_disk_read_bytes_total counter
node_disk_read_bytes_total{{device="md0"}} {1e9 + mib}
node_disk_read_bytes_total{{device="nvme0n1"}} {1e9 + mib}
node_disk_read_bytes_total{{device="nvme1n1"}} 1.000e+09
node_disk_reads_completed_total{{device="nvme0n1"}} {500 + 8 * busy_seconds}
node_disk_written_bytes_total{{device="nvme0n1"}} 2.5e+09
node_disk_writes_completed_total{{device="nvme0n1"}} 500
# TYPE node_filesystem_avail_bytes gauge
node_filesystem_avail_bytes{{device="/dev/md0",fstype="xfs",mountpoint="/var/lib/kafka"}} {data_available_gib * GIB}
node_filesystem_avail_bytes{{device="/dev/root",fstype="ext4",mountpoint="/"}} {6 * GIB}
node_filesystem_avail_bytes{{device="/dev/loop0",fstype="squashfs",mountpoint="/snap/core/1"}} 0
node_filesystem_avail_bytes{{device="tmpfs",fstype="tmpfs",mountpoint="/run"}} 1
node_filesystem_size_bytes{{device="/dev/md0",fstype="xfs",mountpoint="/var/lib/kafka"}} {100 * GIB}
node_filesystem_size_bytes{{device="/dev/root",fstype="ext4",mountpoint="/"}} {8 * GIB}
node_filesystem_size_bytes{{device="/dev/loop0",fstype="squashfs",mountpoint="/snap/core/1"}} 5e+07
node_filesystem_size_bytes{{device="tmpfs",fstype="tmpfs",mountpoint="/run"}} 8e+08
# TYPE node_filesystem_readonly gauge
node_filesystem_readonly{{device="/dev/md0",fstype="xfs",mountpoint="/var/lib/kafka"}} 0
node_filesystem_readonly{{device="/dev/root",fstype="ext4",mountpoint="/"}} 1
# TYPE node_load1 gauge
node_load1 1.25
# TYPE node_memory_Cached_bytes gauge
node_memory_Cached_bytes {GIB}
node_memory_MemAvailable_bytes {available_gib * GIB:.9e}
node_memory_MemFree_bytes 1e+08
node_memory_MemTotal_bytes {8 * GIB}
# TYPE process_start_time_seconds gauge
process_start_time_seconds 1.79525e+09
"""
