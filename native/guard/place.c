#include "guard/place.h"

#include "guard/answer.h"
#include "guard/file.h"
#include "guard/history.h"
#include "guard/kind.h"
#include "guard/kind/mpi.h"
#include "guard/sha256.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define LOCAL                                                                                                \
    "ext2 ext3 ext4 xfs btrfs zfs f2fs jfs reiserfs bcachefs vfat overlay tmpfs ramfs rootfs squashfs erofs"
#define MEMORY "tmpfs ramfs rootfs"

enum { TMPFS = 0x01021994, RAMFS = (int)0x858458f6 };

#ifdef WULF_FAULTS
/* A build for tests takes the disk of this machine for one that others may have, too, where a file says so.
 */
static const char *local_types(void) {
    struct stat about;
    return stat("/run/wulf-fault/foreign", &about) == 0 ? "tmpfs ramfs rootfs" : LOCAL;
}
#else
static const char *local_types(void) { return LOCAL; }
#endif

struct mount {
    const char *type, *options;
};

/* Itself, or the directory above it that is there. */
static const char *upper(const char *path) {
    struct stat about;
    char *at = keep_text(path);
    while (*at && stat(at, &about) != 0) {
        char *slash = strrchr(at, '/');
        *(slash ? slash : at) = 0;
    }
    return *at ? at : "/";
}

/* "\040" is a space. */
static const char *plain(struct bytes escaped) {
    struct text text = {0};
    for (size_t i = 0; i < escaped.size; i++) {
        if (bytes_begin(bytes_from(escaped, i), "\\040")) {
            text_word(&text, " ");
            i += 3;
        } else {
            text_add(&text, escaped.at + i, 1);
        }
    }
    return text_string(&text);
}

static bool is_inside(const char *path, const char *at) {
    const size_t size = strlen(at);
    return is_same(at, "/") || (strncmp(path, at, size) == 0 && (!path[size] || path[size] == '/'));
}

/* The file system that a path is on: of mounts at one place the last one counts. */
static struct mount mount_of(const char *path) {
    struct mount found = {"unknown", ""};
    struct text text = {0};
    char *real = realpath(upper(path), NULL);
    size_t best = 0;
    if (real && read_any("/proc/self/mountinfo", &text) == DONE) {
        struct bytes rest = {text_string(&text), text.size}, line, word, type, options;
        while (next_line(&rest, &line)) {
            for (int i = 0; i < 5; i++)
                if (!next_word(&line, &word))
                    break;
            const char *at = plain(word);
            while (next_word(&line, &word) && !bytes_are(word, "-"))
                continue;
            if (!is_inside(real, at) || strlen(at) < best || !next_word(&line, &type) ||
                !next_word(&line, &word) || !next_word(&line, &options))
                continue;
            best = strlen(at);
            found = (struct mount){keep(type.at, type.size), keep(options.at, options.size)};
        }
    }
    forgive();
    free(real);
    return found;
}

bool place_is_local(const char *path) { return is_word_of(mount_of(path).type, local_types()); }

/* The same for all who see the same file. */
static const char *key_of(const char *path, const struct mount *mount) {
    const char *there = upper(path), *rest = path + (is_same(there, "/") ? 0 : strlen(there));
    struct stat about;
    struct text content = {0};
    char hex[65];
    if (stat(there, &about) != 0)
        return path;
    if (is_word_of(mount->type, local_types()))
        return print("%s:%llu:%llu%s", boot_id(), (unsigned long long)about.st_dev,
                     (unsigned long long)about.st_ino, rest);
    /* Devices are of one kernel; on a server's disk the number of a file is the same for all. */
    if (S_ISREG(about.st_mode) && read_any(there, &content) != DONE)
        forgive();
    sha256_hex(text_string(&content), content.size, hex);
    return print("%llu:%.16s%s", (unsigned long long)about.st_ino, hex, rest);
}

static const char *option(const char *options, const char *name) {
    struct bytes rest = {options, strlen(options)}, one;
    for (bool more = true; more;) {
        more = cut(&rest, ',', &one);
        const struct bytes word = more ? one : rest;
        if (bytes_begin(word, name))
            return keep(word.at + strlen(name), word.size - strlen(name));
    }
    return NULL;
}

static bool is_in_memory(const char *directory) {
    struct statfs about;
    return starts_with(directory, "/run/") || starts_with(directory, "/cow/") ||
           starts_with(directory, "/dev/shm/") ||
           (statfs(directory, &about) == 0 && ((int)about.f_type == TMPFS || (int)about.f_type == RAMFS));
}

/* Why what is written there does not last, or `-`. */
static const char *forgets(const struct mount *mount) {
    if (is_word_of(mount->type, MEMORY))
        return print("in memory (%s), so a boot forgets it", mount->type);
    if (is_word_of(mount->type, "squashfs erofs"))
        return print("on a file system that cannot be written (%s)", mount->type);
    if (is_same(mount->type, "overlay")) {
        const char *layer = option(mount->options, "upperdir=");
        if (option(mount->options, "volatile") || (layer && is_in_memory(layer)))
            return "on an overlay in memory, so a boot forgets it";
        return layer ? "-" : "on an overlay that cannot be written";
    }
    return is_word_of(mount->type, local_types())
               ? "-"
               : print("on %s, which other nodes may have, too", mount->type);
}

/* `mine` when a confirmed change of this node is in it, else the node that says so there. */
static const char *holder_of(const char *kind, const char *path) {
    const struct all_touched all = touched_since("original");
    struct text text = {0};
    const char *found = "-";
    for (size_t i = 0; i < all.count; i++)
        if (is_same(all.at[i].step.kind_name, kind))
            return "mine";
    if (read_any(path, &text) != DONE)
        forgive();
    struct bytes rest = {text_string(&text), text.size}, line, word;
    while (next_line(&rest, &line))
        if (bytes_begin(line, "# wulf on ") && bytes_find(line, " has changed this file") < line.size) {
            line = bytes_from(line, strlen("# wulf on "));
            if (next_word(&line, &word))
                found = keep(word.at, word.size);
        }
    return found;
}

static void where_step(const struct step *step) {
    const char *path = step->target;
    if (is_same(step->kind_name, "mpi_parameter")) {
        if (mpi_file(&path) != DONE)
            fail(EXIT_FAILED, "%s: %s", step->knob, complaint("Open MPI is not installed"));
    } else if (!is_same(step->kind_name, "stored")) {
        return;
    }
    const struct mount mount = mount_of(path);
    SAY("file", print("%zu", step->number), path, mount.type, key_of(path, &mount),
        holder_of(step->kind_name, path), forgets(&mount), value_now(step));
}

void where(const struct plan *plan) {
    for (size_t i = 0; i < plan->count; i++)
        where_step(&plan->steps[i]);
}
