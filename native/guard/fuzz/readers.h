/* All readers on one input: for the fuzzer, and for the tests, which feed it damaged examples. */
#ifndef WULF_GUARD_FUZZ_READERS_H
#define WULF_GUARD_FUZZ_READERS_H

#include "guard/read/base64.h"
#include "guard/read/ethtool.h"
#include "guard/read/ip.h"
#include "guard/read/journal.h"
#include "guard/read/made.h"
#include "guard/read/nft.h"
#include "guard/read/plan.h"
#include "guard/read/scope.h"
#include "guard/read/state.h"
#include "guard/read/value.h"

#include <stdlib.h>
#include <string.h>

static void touch(void *of, struct bytes bytes) {
    size_t *sum = of;
    for (size_t i = 0; i < bytes.size; i++)
        *sum += (unsigned char)bytes.at[i];
}

static void touch_pair(void *of, const char *name, size_t size, struct bytes value, bool maximum) {
    touch(of, (struct bytes){name, size});
    touch(of, value);
    *(size_t *)of += maximum;
}

static void touch_element(void *of, struct bytes element) {
    size_t begin = 0, end = 0;
    uint64_t seconds = 0;
    touch(of, element);
    if (read_expiry(element, &begin, &end, &seconds))
        touch(of, (struct bytes){element.at + begin, end - begin});
    for (size_t i = 0; i < element.size; i++)
        *(size_t *)of += passing_part(element, i);
}

static void touch_line(void *of, const struct nft_line *line) {
    touch(of, line->family);
    touch(of, line->table);
    touch(of, line->chain);
    touch(of, line->text);
    if (line->what == NFT_ELEMENTS)
        each_element(line->text, touch_element, of);
}

static size_t read_tools(struct bytes text) {
    size_t sum = 0;
    for (enum ethtool_group group = COALESCE; group < GROUPS; group++)
        read_ethtool(group, text, touch_pair, &sum);
    sum += is_nft(text) + are_routes(text);
    read_nft(text, touch_line, &sum);
    for (struct bytes rest = text, line; next_line(&rest, &line);) {
        struct route_line route;
        if (read_route(line, "rto_min", &route) == DONE)
            touch(&sum, route.property);
        each_route_word(line, "rto_min", touch, &sum);
    }
    return sum;
}

static size_t read_values(struct bytes text) {
    static const struct range ranges[MOST_RANGES] = {{-5, 9000}, {1, 20}};
    size_t sum = 0;
    for (enum value_type type = NUMBER; type <= SWITCHES; type++)
        sum += read_value_of(type, ranges, "on off", text) == GRANTED;
    return sum;
}

/* Everything that reads bytes from outside. What it returns depends on all that was read. */
static size_t read_everything(const char *at, size_t size) {
    const struct bytes text = {at, size};
    static struct plan_line lines[PLAN_LINES];
    struct bytes word, why, body;
    struct about_text about;
    struct scope scope;
    uint64_t number;
    size_t count = 0, sum = read_tools(text) + read_values(text);
    if (read_plan(text, lines, &count) == GRANTED)
        for (size_t i = 0; i < count; i++)
            touch(&sum, lines[i].value);
    static struct made made;
    if (read_made(text, &made) == GRANTED)
        for (size_t i = 0; i < made.count; i++)
            touch(&sum, made.items[i].value);
    if (read_about(text, &about) == DONE)
        touch(&sum, about.rest);
    if (read_tx_state(text, &word, &why) == DONE)
        touch(&sum, why);
    if (read_scope(text, &scope) == GRANTED)
        sum += scope_has(scope.users, "0");
    if (read_sums(text, &body, &number) == SOUND)
        touch(&sum, body);
    if (read_state_end(text, &body, &number) == SOUND)
        touch(&sum, body);
    struct state_line line;
    for (struct bytes rest = text; read_state_line(&rest, &line) == DONE;)
        touch(&sum, line.value);
    struct sum_line one;
    for (struct bytes rest = text; read_sum_line(&rest, &one) == DONE;)
        touch(&sum, one.name);
    char *plain = malloc(size + 4);
    size_t plain_size = 0;
    if (plain &&
        (unescape(text, plain, &plain_size) == DONE || base64_read(text, plain, &plain_size) == DONE))
        touch(&sum, (struct bytes){plain, plain_size});
    free(plain);
    return sum;
}

#endif
