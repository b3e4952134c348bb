#include "guard/read/made.h"

static enum outcome read_item(struct bytes text, struct made_item *item) {
    struct bytes name;
    *item = (struct made_item){0};
    if (!cut(&text, '=', &name)) {
        item->knob = text;
        return bytes_only(text, "_.-") ? GRANTED : FAILED;
    }
    item->value = text;
    if (cut(&name, '/', &item->card)) {
        const bool has_card = cut(&item->card, ',', &item->part);
        if (!has_card) {
            item->part = item->card;
            item->card = (struct bytes){0};
        }
        if (!bytes_only(item->part, "") || (has_card && !is_interface(item->card)))
            return FAILED;
    }
    item->knob = name;
    return bytes_only(name, "_.-") && bytes_printable(text) ? GRANTED : FAILED;
}

enum outcome read_made(struct bytes text, struct made *made) {
    struct bytes word;
    made->count = 0;
    if (!cut(&text, ':', &word) || !bytes_are(word, "made") || !cut(&text, ':', &made->change) ||
        !is_change(made->change))
        return FAILED;
    bool more = cut(&text, '|', &made->interface);
    if (!more)
        made->interface = text;
    if (!bytes_are(made->interface, "-") && !is_interface(made->interface))
        return FAILED;
    while (more) {
        more = cut(&text, '|', &word);
        if (made->count == MADE_ITEMS || read_item(more ? word : text, &made->items[made->count]) != GRANTED)
            return FAILED;
        made->count++;
    }
    return GRANTED;
}
