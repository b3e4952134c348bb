#include <stdlib.h>
#include <unistd.h>

#include "core/failure.h"
#include "core/lines.h"
#include "core/record.h"
#include "tests/expect.h"

/* The text of one JSON string. */
static void expect_escaped(const char *text, const char *wanted) {
    struct record record = {0};
    record_string(&record, text);
    EXPECT(record.length == strlen(wanted) && memcmp(record.text, wanted, record.length) == 0);
    record_free(&record);
}

static void escapes(void) {
    expect_escaped("", "\"\"");
    expect_escaped("a\"b\\c", "\"a\\\"b\\\\c\"");
    expect_escaped("line\nbreak\t\x1b\x7f", "\"line\\u000abreak\\u0009\\u001b\\u007f\"");
    expect_escaped("gr\xc3\xbc\xc3\x9f \xf0\x9f\x90\xba", "\"gr\xc3\xbc\xc3\x9f \xf0\x9f\x90\xba\"");
}

static void replaces_what_is_not_utf8(void) {
    expect_escaped("\xff", "\"\xef\xbf\xbd\"");
    expect_escaped("\xc3", "\"\xef\xbf\xbd\"");                                 /* ends too early */
    expect_escaped("\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\"");                 /* overlong */
    expect_escaped("\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""); /* surrogate */
}

static void writes_whole_lines(void) {
    int ends[2];
    char line[200] = "";
    EXPECT(pipe(ends) == 0);
    struct record record = {0};
    record_begin(&record, "x");
    record_pair_unsigned(&record, "most", UINT64_MAX);
    record_pair_double(&record, "none", 0.0 / 0.0, 1);
    record_pair_double(&record, "half", 0.5, 1);
    record_pair_bool(&record, "yes", true);
    record_key(&record, "list");
    record_open(&record, '[');
    record_unsigned(&record, 1);
    record_null(&record);
    record_close(&record, ']');
    record_close(&record, '}');
    EXPECT(record_write(&record, ends[1]) == 0);
    record_free(&record);
    EXPECT(read(ends[0], line, sizeof line - 1) > 0);
    EXPECT_TEXT(line, "{\"type\":\"x\",\"most\":18446744073709551615,\"none\":null,\"half\":0.5,\"yes\":true,"
                      "\"list\":[1,null]}\n");
    close(ends[0]);
    close(ends[1]);
}

static void says_when_it_cannot_write(void) {
    struct record record = {0};
    record_begin(&record, "x");
    record_close(&record, '}');
    EXPECT(record_write(&record, -1) == -1);
    record_free(&record);
}

static void failures_keep_the_first_cause(void) {
    struct failure failure = {0};
    char text[400] = "";
    EXPECT(failure_set(&failure, "peer_lost", "node\"02", "%s is gone", "it") == -1);
    EXPECT(failure_set(&failure, "system", "", "what followed") == -1);
    const size_t length = line_failure_text(&failure, text, sizeof text);
    EXPECT(length == strlen(text));
    EXPECT_TEXT(
        text,
        "{\"type\":\"error\",\"code\":\"peer_lost\",\"peer\":\"node\\\"02\",\"message\":\"it is gone\"}\n");
    EXPECT(line_failure_text(&failure, text, 10) == 0);
}

int main(void) {
    escapes();
    replaces_what_is_not_utf8();
    writes_whole_lines();
    says_when_it_cannot_write();
    failures_keep_the_first_cause();
    return EXPECT_STATUS();
}
