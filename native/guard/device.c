#include "guard/device.h"

#include "guard/fault.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ADDRESS = 6 };

static const char *shown(const unsigned char *address) {
    return print("%02x:%02x:%02x:%02x:%02x:%02x", address[0], address[1], address[2], address[3], address[4],
                 address[5]);
}

static bool is_nothing(const unsigned char *address) {
    static const unsigned char nothing[ADDRESS];
    return memcmp(address, nothing, ADDRESS) == 0;
}

static const char *permanent_of(int socket, const char *interface) {
    union {
        struct ethtool_perm_addr asked;
        unsigned char room[sizeof(struct ethtool_perm_addr) + 32];
    } permanent = {.asked = {.cmd = ETHTOOL_GPERMADDR, .size = 32}};
    struct ifreq request = {0};
    strncpy(request.ifr_name, interface, sizeof request.ifr_name - 1);
    request.ifr_data = (char *)&permanent;
    if (ioctl(socket, SIOCETHTOOL, &request) == 0 && permanent.asked.size == ADDRESS &&
        !is_nothing(permanent.room + sizeof permanent.asked))
        return shown(permanent.room + sizeof permanent.asked);
    return NULL;
}

/* Its index beside its address, as that changes by itself: a bridge takes that of its first port. */
static const char *asked(int socket, const char *interface) {
    struct ifreq request = {0};
    const char *permanent = permanent_of(socket, interface);
    if (permanent)
        return permanent;
    strncpy(request.ifr_name, interface, sizeof request.ifr_name - 1);
    if (ioctl(socket, SIOCGIFHWADDR, &request) != 0)
        return NULL;
    const char *address = shown((const unsigned char *)request.ifr_hwaddr.sa_data);
    return ioctl(socket, SIOCGIFINDEX, &request) == 0 ? print("%s %d", address, request.ifr_ifindex) : NULL;
}

const char *device_permanent(const char *interface) {
    if (*fault_address())
        return fault_address();
    const int asking = is_same(interface, "-") ? -1 : socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const char *address = asking < 0 ? NULL : permanent_of(asking, interface);
    if (asking >= 0)
        close(asking);
    return address;
}

const char *device_identity(const char *interface) {
    if (is_same(interface, "-") || strlen(interface) >= IFNAMSIZ)
        return NULL;
    const int asking = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (asking < 0)
        return NULL;
    const char *identity = asked(asking, interface);
    close(asking);
    return identity;
}

bool device_may_be_same(const char *known, const char *now, bool same_boot) {
    const size_t known_size = strcspn(known, " "), now_size = strcspn(now, " ");
    const char *known_index = known + known_size, *now_index = now + now_size;
    if (known_size == now_size && strncmp(known, now, now_size) == 0)
        return true;
    /* Made anew under its name it is the one that was configured after a boot. */
    return *known_index && *now_index && (!same_boot || is_same(known_index, now_index));
}

const char *device_is_not(const char *interface, const char *known, bool same_boot) {
    const char *now = device_identity(interface);
    if (!now)
        return print("%s (%s) is not there", interface, known);
    const bool both = !strchr(known, ' ') == !strchr(now, ' ');
    return both && device_may_be_same(known, now, same_boot)
               ? NULL
               : print("another device has the name %s now: %s, not %s", interface, now, known);
}
