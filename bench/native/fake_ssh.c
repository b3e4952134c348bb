/* Stands in for ssh: answers as a node would, from files, so that thousands of nodes fit on one machine.
 *
 * Called as wulf calls ssh: options, "--", NODE, TEXT. TEXT holds the mark that frames the output. Which file
 * answers depends on the node's number; in it "@NODE@" becomes the node's name, "@A@" an address
 * of its own and "@TIME@" the time.
 * WULF_FAKE_TREES names a directory with peers.tree and 0.tree … (count in WULF_FAKE_COUNT). */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char *slurp(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return NULL;
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    char *text = malloc(*size + 1);
    if (text == NULL || fread(text, 1, *size, file) != *size)
        exit(70);
    text[*size] = '\0';
    fclose(file);
    return text;
}

int main(int argc, char **argv) {
    if (argc < 4)
        return 255;
    const char *node = argv[argc - 2], *text = argv[argc - 1];
    const char *directory = getenv("WULF_FAKE_TREES"), *count = getenv("WULF_FAKE_COUNT");
    const char *mark = strstr(text, " wulf ");
    if (directory == NULL || count == NULL || mark == NULL)
        return 255;
    char sink[1 << 16];
    while (read(STDIN_FILENO, sink, sizeof sink) > 0) {
    }
    const char *digits = node;
    while (*digits != '\0' && !isdigit((unsigned char)*digits))
        digits++;
    long number = strtol(digits, NULL, 10);
    char path[4096];
    /* Only the script that looks at peers is given NAME=ADDRESS words. */
    if (strchr(strstr(text, " -s -- "), '=') != NULL)
        snprintf(path, sizeof path, "%s/peers.tree", directory);
    else
        snprintf(path, sizeof path, "%s/%ld.tree", directory, number % strtol(count, NULL, 10));
    size_t size;
    char *tree = slurp(path, &size);
    if (tree == NULL)
        return 255;
    static char buffer[1 << 20];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    printf("%.16s\n", mark + 6);
    char *at = tree, *hit;
    while ((hit = strchr(at, '@')) != NULL) {
        fwrite(at, 1, (size_t)(hit - at), stdout);
        if (strncmp(hit, "@NODE@", 6) == 0) {
            fputs(node, stdout);
            at = hit + 6;
        } else if (strncmp(hit, "@A@", 3) == 0) {
            printf("10.%ld.%ld.%ld", number >> 16 & 255, number >> 8 & 255, number & 255);
            at = hit + 3;
        } else if (strncmp(hit, "@TIME@", 6) == 0) {
            struct timespec now;
            clock_gettime(CLOCK_REALTIME, &now);
            printf("%lld.%09ld", (long long)now.tv_sec, now.tv_nsec);
            at = hit + 6;
        } else {
            fputc('@', stdout);
            at = hit + 1;
        }
    }
    fputs(at, stdout);
    fflush(stdout);
    fprintf(stderr, "%.16s 0\n", mark + 6);
    return 0;
}
