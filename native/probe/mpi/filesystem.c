#include "probe/mpi/filesystem.h"

#include <stdio.h>
#include <sys/vfs.h>

struct kind {
    uint32_t magic;
    const char *name;
};

/* statfs(2), and the sources of the file systems that are not in the kernel. */
static const struct kind KINDS[] = {
    {0x01021994, "tmpfs"},     {0x858458f6, "ramfs"},    {0xef53, "ext4"},     {0x58465342, "xfs"},
    {0x9123683e, "btrfs"},     {0x6969, "nfs"},          {0xff534d42, "cifs"}, {0xfe534d42, "smb2"},
    {0x794c7630, "overlayfs"}, {0x01021997, "9p"},       {0x65735546, "fuse"}, {0x0bd00bd0, "lustre"},
    {0x19830326, "beegfs"},    {0x47504653, "gpfs"},     {0x2fc12fc1, "zfs"},  {0x00c36400, "ceph"},
    {0xf2f52010, "f2fs"},      {0x20030528, "orangefs"}, {0x01161970, "gfs2"}, {0x7461636f, "ocfs2"},
};

const char *filesystem_name(const char *directory) {
    static char number[24];
    struct statfs said;
    if (statfs(directory, &said) != 0)
        return "unknown";
    const uint32_t magic = (uint32_t)said.f_type;
    for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++)
        if (KINDS[i].magic == magic)
            return KINDS[i].name;
    snprintf(number, sizeof number, "0x%08x", magic);
    return number;
}

uint64_t filesystem_free(const char *directory) {
    struct statfs said;
    return statfs(directory, &said) == 0 ? (uint64_t)said.f_bavail * (uint64_t)said.f_bsize : 0;
}
