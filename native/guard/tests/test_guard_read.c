/* The readers: what they accept, what they refuse, and that damaged bytes lead nowhere outside of them. */
#include "core/rng.h"
#include "guard/fuzz/readers.h"
#include "guard/items.h"
#include "guard/sha256.h"
#include "tests/expect.h"

static struct bytes of(const char *text) { return (struct bytes){text, strlen(text)}; }

static bool is_plan(const char *text) {
    static struct plan_line lines[PLAN_LINES];
    size_t count;
    return read_plan(of(text), lines, &count) == GRANTED;
}

static void a_plan_is_read_to_its_last_line(void) {
    EXPECT(is_plan("k\tsysctl\t-\tnet.ipv4.tcp_sack\t0\n"));
    EXPECT(is_plan("k\tsysctl\t-\ta\t0\nl\tlink\teth0\tmtu\t9000\n"));
    static const char *const bad[] = {"",
                                      "\n",
                                      "k\tsysctl\t-\ta\t0",
                                      "k\tsysctl\t-\ta\n",
                                      "k\tsysctl\t-\ta\t\n",
                                      "\tk\tsysctl\t-\ta\t0\n",
                                      "k\tsysctl\t-\ta\t0\t1\n",
                                      "k\tsysctl\t-\ta\t0\r\n",
                                      "k\tsysctl\t\ta\t0\n",
                                      "k\tsys ctl\t-\ta\t0\n",
                                      "k\tlink\t..\tmtu\t1500\n",
                                      "k\tlink\t--batch\tmtu\t1500\n",
                                      "k\tlink\ta/b\tmtu\t1500\n",
                                      "k\tlink\tabcdefghijklmnop\tmtu\t1500\n",
                                      "k\tsysctl\t-\ta\t0\nk\tsysctl\t-\ta\t1\n",
                                      "k\tsysctl\t-\ta\t0\n\n"};
    for (size_t i = 0; i < COUNT(bad); i++)
        EXPECT(!is_plan(bad[i]));
    static struct plan_line lines[PLAN_LINES];
    size_t count;
    EXPECT(read_plan((struct bytes){"k\tsysctl\t-\ta\0b\t0\n", 17}, lines, &count) == FAILED);
}

static void a_file_is_made_of_settings(void) {
    static struct made made;
    EXPECT(read_made(of("made:A:eth0|nic,eno1.7/nic.gro=off|sysctl.a=1 2|online"), &made) == GRANTED);
    EXPECT(made.count == 3 && bytes_are(made.change, "A") && bytes_are(made.interface, "eth0"));
    EXPECT(bytes_are(made.items[0].part, "nic") && bytes_are(made.items[0].knob, "nic.gro"));
    EXPECT(bytes_are(made.items[0].card, "eno1.7") && !made.items[1].card.size);
    EXPECT(!made.items[1].part.size && bytes_are(made.items[1].value, "1 2"));
    EXPECT(!made.items[2].value.at && bytes_are(made.items[2].knob, "online"));
    EXPECT(read_made(of("made:A:-"), &made) == GRANTED && made.count == 0);
    static const char *const bad[] = {"",
                                      "made:",
                                      "made:A",
                                      "made:../A:eth0",
                                      "made:A.new:eth0",
                                      "made:A:eth0|",
                                      "made:A:eth0||",
                                      "made:A:../x|a=1",
                                      "made:A:eth0|a/b/c=1",
                                      "made:A:eth0|a,/c=1",
                                      "made:A:eth0|a,../c=1",
                                      "made:A:eth0|a=",
                                      "made:A:eth0|=1",
                                      "made:A:eth0|a=1\n",
                                      "made:A:eth0|$(id)",
                                      "file:644:eA=="};
    for (size_t i = 0; i < COUNT(bad); i++)
        EXPECT(read_made(of(bad[i]), &made) == FAILED);
}

static void a_value_is_of_its_type(void) {
    static const struct range one[MOST_RANGES] = {{68, 65535}},
                              several[MOST_RANGES] = {{-5, 10}, {1, 100}, {1, INT32_MAX}};
    static const struct {
        enum value_type type;
        const char *text;
        bool good;
    } cases[] = {
        {NUMBER, "9000", true},
        {NUMBER, "67", false},
        {NUMBER, "65536", false},
        {NUMBER, "-1", false},
        {NUMBER, "09000", false},
        {NUMBER, "9000 ", false},
        {NUMBER, "+9000", false},
        {NUMBER, "off", true},
        {NUMBER, "99999999999999999999", false},
        {NUMBERS, "10 5 1", true},
        {NUMBERS, "-5 100 2147483647", true},
        {NUMBERS, "11 5 1", false},
        {NUMBERS, "10 101 1", false},
        {NUMBERS, "10 5 0", false},
        {NUMBERS, "10 5 2147483648", false},
        {NUMBERS, "10 5", false},
        {NUMBERS, "10 5 1 1", false},
        {NUMBERS, "10 5 1 ", false},
        {NUMBERS, "10  5 1", false},
        {NUMBERS, "10 5 x", false},
        {RISING, "10 10 11", true},
        {RISING, "-5 1 2147483647", true},
        {RISING, "10 5 11", false},
        {RISING, "1 2 1", false},
        {RISING, "1 2", false},
        {WORDS, "on", true},
        {WORDS, "on off", false},
        {WORDS, "o", false},
        {NAME, "network-latency", true},
        {NAME, "../evil", false},
        {NAME, ".x", false},
        {NAME, "a b", false},
        {TEXT, "3,1", true},
        {TEXT, "$(x)", false},
        {DURATION, "5ms", true},
        {DURATION, "default", true},
        {DURATION, "5s", false},
        {CPUS, "0-3,8 5", true},
        {CPUS, "3-0", false},
        {CPUS, "0,", false},
        {CPUS, "all", false},
        {STATES, "all allowed", true},
        {STATES, "disabled: C1 C6", true},
        {STATES, "disabled:", false},
        {STATES, "disabled: ../x", false},
        {MASKS, "ff,ffffffff 0", true},
        {MASKS, "F", false},
        {MASKS, ",f", false},
        {LISTS, "self,tcp ^ofi", true},
        {LISTS, "a=$(x)", false},
        {LISTS, "-x", false},
        {PAIRS, "rx 2 tx 2", true},
        {PAIRS, "rx", false},
        {PAIRS, "rx 2 tx", false},
        {PAIRS, "evil 2", false},
        {SIZES, "max 512", true},
        {SIZES, "least", false},
        {SWITCHES, "on off", true},
        {SWITCHES, "on  off", false},
        {SWITCHES, "@A/saved.1", false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const bool good = read_value_of(cases[i].type, cases[i].type == NUMBER ? one : several, "on off",
                                        of(cases[i].text)) == GRANTED;
        if (good != cases[i].good)
            fprintf(stderr, "%d: '%s'\n", (int)cases[i].type, cases[i].text);
        EXPECT(good == cases[i].good);
    }
}

static void a_state_comes_back_and_only_whole(void) {
    struct state state = {0}, read = {0};
    struct text text = {0};
    state_add(&state, "key\twith\\tab", "value\nwith lines\\");
    state_add_flagged(&state, "empty", "", ITEM_VOLATILE);
    state_write(&state, &text);
    EXPECT(state_read(&text, &read) == DONE);
    EXPECT(read.count == 2 && state_same(&state, &read));
    EXPECT_TEXT(read.at[0].value, "value\nwith lines\\");
    EXPECT(read.at[1].flags == ITEM_VOLATILE);
    for (size_t i = 0; i < text.size; i++) { /* any byte that is another one, and any end that is lost */
        struct text damaged = {0};
        struct state none = {0};
        text_add(&damaged, text.at, text.size);
        damaged.at[i] ^= 1;
        EXPECT(state_read(&damaged, &none) != DONE);
        struct text torn = {0};
        text_add(&torn, text.at, i);
        EXPECT(state_read(&torn, &none) != DONE);
    }
}

static struct state state_of(const char *words) {
    struct state state = {0};
    struct bytes rest = of(words), word, key;
    while (next_word(&rest, &word))
        if (cut(&word, '=', &key))
            state_add(&state, keep(key.at, key.size), keep(word.at, word.size));
    return state;
}

static bool is_line(const char *key) { return *key == 'l'; }

static const char *folded(const char *first, const char *then, const char *next, const char *last,
                          const char *key) {
    struct state before = state_of(first), after = state_of(then), next_before = state_of(next),
                 next_after = state_of(last);
    states_fold(&before, &after, is_line, &next_before, &next_after);
    const char *was = state_value(&before, key), *is = state_value(&after, key);
    return print("%s>%s", was ? was : "-", is ? is : "-");
}

static void two_changes_fold_into_one(void) {
    EXPECT_TEXT(folded("a=1", "a=2", "a=2", "a=3", "a"), "1>3");
    EXPECT_TEXT(folded("a=1", "a=2", "a=9", "a=3", "a"),
                "9>3"); /* somebody else has set it between the two */
    EXPECT_TEXT(folded("a=1 b=5", "a=2 b=5", "a=2 b=7", "a=3 b=8", "b"), "7>8");
    EXPECT_TEXT(folded("a=1", "a=2", "a=2", "a=1", "a"), "1>1");
    EXPECT_TEXT(folded("t=x", "s=0", "s=0", "t=x", "t"), "x>x");             /* taken away, and back */
    EXPECT_TEXT(folded("a=1", "a=2", "b=1", "b=2", "a"), "1>2");             /* not there for the second */
    EXPECT_TEXT(folded("a=1", "a=2 l=1", "a=2 l=1", "a=3", "l"), "->-");     /* the first has made it */
    EXPECT_TEXT(folded("a=1", "a=2 b=1", "a=2 b=1", "a=3 b=2", "b"), "1>2"); /* it came with something else */
}

static size_t rules;
static void count_rule(void *where, const struct nft_line *line) {
    (void)where;
    rules += line->what == NFT_RULE && bytes_are(line->chain, "in") && bytes_are(line->table, "f");
}

static void a_listing_of_rules_is_read(void) {
    static const char listing[] =
        "table inet f { # handle 3\n"
        "\tset a {\n\t\ttype ipv4_addr\n\t\tflags dynamic,timeout\n"
        "\t\telements = { 10.0.0.1 comment \"x }, {y\",\n\t\t\t     10.0.0.2 }\n\t}\n"
        "\tchain in { # handle 1\n"
        "\t\tcomment \"type filter hook input\"\n"
        "\t\ttype filter hook input priority filter; policy accept;\n"
        "\t\ttcp dport 22 accept comment \"# handle 9\" # handle 2\n\t}\n}\n";
    EXPECT(is_nft(of(listing)) && is_nft(of("")) && is_nft(of("table ip x {\n}\n\ntable ip y {\n}\n")));
    for (size_t i = 1; i + 2 < strlen(listing); i++) /* the half of one */
        EXPECT(!is_nft((struct bytes){listing, i}));
    EXPECT(!is_nft(of("Error: no\n")) && !is_nft(of("}\n")) &&
           !is_nft(of("table ip x {\ntable ip y {\n}\n")));
    rules = 0;
    read_nft(of(listing), count_rule, NULL);
    EXPECT(rules == 1);
    size_t begin, end;
    uint64_t seconds;
    EXPECT(read_expiry(of("10.0.0.1 timeout 1h expires 59m30s500ms"), &begin, &end, &seconds) &&
           seconds == 3570);
    EXPECT(!read_expiry(of("10.0.0.1 comment \"it expires 5s\""), &begin, &end, &seconds));
    EXPECT(passing_part(of("packets 12 bytes 345 drop"), 0) == strlen("packets 12 bytes 345"));
}

static void a_listing_of_routes_is_known(void) {
    EXPECT(are_routes(of("")) && are_routes(of("default via 10.0.0.1 proto dhcp metric 1024\n"
                                               "10.0.0.0/24 proto kernel scope link src 10.0.0.7\n"
                                               "10.1.0.0/16\n\tnexthop via 10.0.0.2 dev eth0 weight 1\n"
                                               "unreachable 10.3.0.0/16\nfe80::/64 proto kernel\n")));
    EXPECT(!are_routes(of("Cannot find device\n")) && !are_routes(of("10.0.0.0/24 dev eth0\n10\n")) &&
           !are_routes(of("\n")) && !are_routes(of("Usage: ip\n")));
}

static void a_digest_is_that_of_the_standard(void) {
    char hex[65];
    sha256_hex("abc", 3, hex);
    EXPECT_TEXT(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    sha256_hex("", 0, hex);
    EXPECT_TEXT(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

static const char *const EXAMPLES[] = {
    "made:A:eth0|nic/nic.gro=off|sysctl.a=1 2|online",
    "k\tsysctl\t-\tnet.ipv4.tcp_sack\t0\nl\tlink\teth0\tmtu\t9000\n",
    "format\t3\nnumber\t1\nowner\tme\nuid\t0\nboot\tb-1\nat\tnow\nsteps\t1\ndevice\teth0\t02:"
    "00\nwhat\tk\tsysctl\t-\ta\n",
    "applied\tbecause\n",
    "users\t1000 1001\ninterfaces\teth0 ib0\n",
    "Coalesce parameters for eth0:\nAdaptive RX: on  TX: n/a\nrx-usecs:\t8\nCQE mode RX: off  TX: n/a\n",
    "Pre-set maximums:\nRX:\t\t4096\nCurrent hardware settings:\nRX:\t\t512\n",
    "10.9.0.0/24 proto kernel scope link src 10.9.0.1 rto_min lock 5ms linkdown\n",
    "table inet f { # handle 3\n\tset a {\n\t\telements = { 1.2.3.4 timeout 1h expires 5m, 5.6.7.8 "
    "}\n\t}\n}\n",
    "eA==",
    "a\\tb\\n\\\\\t1\tvolatile\nend\t1\t0000000000000000000000000000000000000000000000000000000000000000\n",
};

/* Bytes that were changed, taken away or doubled: the sanitizers see what goes beyond. */
static void damaged_bytes_lead_nowhere(long rounds) {
    uint64_t rng = 7;
    size_t sum = 0;
    for (long i = 0; i < rounds; i++) {
        const char *example = EXAMPLES[rng_next(&rng) % COUNT(EXAMPLES)];
        size_t size = strlen(example);
        char *bytes = malloc(2 * size + 1);
        memcpy(bytes, example, size);
        for (uint64_t j = rng_next(&rng) % 6; j > 0 && size; j--) {
            const size_t at = rng_next(&rng) % size;
            switch (rng_next(&rng) % 4) {
            case 0:
                bytes[at] = (char)rng_next(&rng);
                break;
            case 1:
                bytes[at] = "\t\n \\\"{},=0@-"[rng_next(&rng) % 12];
                break;
            case 2:
                size = at;
                break;
            default:
                memmove(bytes + at, bytes + at + 1, size - at - 1);
                size--;
            }
        }
        char *exact = realloc(bytes, size ? size : 1);
        sum += read_everything(exact, size);
        free(exact);
    }
    EXPECT(sum > 0);
}

int main(int count, char *words[]) {
    a_plan_is_read_to_its_last_line();
    a_file_is_made_of_settings();
    a_value_is_of_its_type();
    a_state_comes_back_and_only_whole();
    two_changes_fold_into_one();
    a_listing_of_rules_is_read();
    a_listing_of_routes_is_known();
    a_digest_is_that_of_the_standard();
    damaged_bytes_lead_nowhere(count > 1 ? strtol(words[1], NULL, 10) : 20000);
    return EXPECT_STATUS();
}
