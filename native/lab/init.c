/* The first process of a virtual machine of the lab: loads the modules of /modules, lays the node's own disk
 * over the host's files, and becomes systemd. What fails is said on the console, and the machine ends. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 1000, PAUSE_NS = 10 * 1000 * 1000 };

static _Noreturn void fail(const char *what) {
    fprintf(stderr, "wulf-lab-init: %s: %s\n", what, strerror(errno));
    sync();
    reboot(RB_POWER_OFF);
    _exit(1);
}

static void attach(const char *source, const char *place, const char *type, unsigned long flags,
                   const char *options) {
    if (mkdir(place, 0755) != 0 && errno != EEXIST)
        fail(place);
    if (mount(source, place, type, flags, options) != 0)
        fail(place);
}

static void load(const char *path) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || (syscall(SYS_finit_module, file, "", 0) != 0 && errno != EEXIST))
        fail(path);
    close(file);
}

/* Every line is the path of a module; those that it needs come before it. */
static void load_all(const char *list) {
    char line[512];
    FILE *file = fopen(list, "r");
    if (file == NULL)
        fail(list);
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        load(line);
    }
    fclose(file);
}

/* A disk is there some time after its driver. */
static void await(const char *device) {
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    for (int tries = 0; access(device, F_OK) != 0; tries++) {
        if (tries == TRIES)
            fail(device);
        nanosleep(&pause, NULL);
    }
}

int main(void) {
    attach("devtmpfs", "/dev", "devtmpfs", 0, NULL);
    load_all("/modules");
    await("/dev/vda");
    await("/dev/vdb");
    attach("/dev/vda", "/base", "ext4", MS_RDONLY, NULL);
    attach("/dev/vdb", "/disk", "ext4", 0, NULL);
    attach("overlay", "/root", "overlay", 0, "lowerdir=/base,upperdir=/disk/upper,workdir=/disk/work");
    if (mount("/dev", "/root/dev", NULL, MS_MOVE, NULL) != 0)
        fail("/root/dev");
    if (chdir("/root") != 0 || mount(".", "/", NULL, MS_MOVE, NULL) != 0 || chroot(".") != 0 ||
        chdir("/") != 0)
        fail("/root");
    execl("/lib/systemd/systemd", "/lib/systemd/systemd", (char *)NULL);
    fail("/lib/systemd/systemd");
}
