#include "guard/kind/routes.h"

#include "guard/read/ip.h"
#include "guard/tool.h"

enum outcome routes_asked(struct text *said, const char *const words[]) {
    if (tool_list(said, "-V", words) != DONE)
        return FAILED;
    return are_routes((struct bytes){text_string(said), said->size})
               ? DONE
               : complain("ip says what are no routes: %s", one_line(said->at, 80));
}
