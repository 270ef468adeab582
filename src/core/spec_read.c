/* spec_read.c - what to add, from JSON: the names are those of weir_job_json(), but for "attempts",
 * which are those it may have, and "run_at". */
#include <string.h>

#include "core/fields.h"
#include "core/job.h"

#define AT(member) offsetof(weir_spec, member)
const weir_field weir__spec_fields[] = {
    WEIR_FIELD("type", weir__as_text, AT(type), .needed = true),
    WEIR_FIELD("data", weir__as_raw, AT(data)),
    WEIR_FIELD("values", weir__as_raw, AT(values)),
    WEIR_FIELD("priority", weir__as_priority, AT(priority)),
    WEIR_FIELD("attempts", weir__as_int32, AT(attempts), .min = 1, .max = WEIR_MAX_ATTEMPTS),
    WEIR_FIELD("delay", weir__as_ms, AT(delay_ms)),
    WEIR_FIELD("run_at", weir__as_moment, AT(run_at)),
    WEIR_FIELD("backoff", weir__as_backoff, AT(backoff)),
    WEIR_FIELD("ttl", weir__as_ms, AT(ttl_ms)),
    WEIR_FIELD("deadline", weir__as_moment, AT(deadline_at)),
    WEIR_FIELD("unique", weir__as_text, AT(unique)),
    WEIR_FIELD("max_lost", weir__as_int32, AT(max_lost), .min = 1, .max = WEIR_MAX_ATTEMPTS),
    WEIR_FIELD("removeOnComplete", weir__as_bool, AT(remove_on_complete)),
    WEIR_FIELD("search", weir__as_bool, AT(search)),
    WEIR_FIELD("search_keys", weir__as_text, AT(search_keys)),
    { 0 }
};
#undef AT
_Static_assert(offsetof(weir_spec, values_len) == offsetof(weir_spec, values) + sizeof(char *),
               "weir__as_raw() sets both");

weir_code weir__read_spec(weir_reader *in, weir_json_piece object, weir_spec *out)
{
    *out = (weir_spec){ 0 };
    weir_code rc = weir__read(in, weir__spec_fields, object, out);
    if (rc)
        return rc;
    if (out->delay_ms && out->run_at) {
        strcpy(in->field, "run_at");
        return weir_fail(&in->err, WEIR_EINVAL, "run_at: there is a delay, too; only one of them "
                                                "can be given");
    }
    rc = weir__spec_check(out, -1, &in->err);
    if (rc) {           /* numbers are right by now, and these members have their own names in C */
        size_t len = strcspn(in->err.msg, ":");
        memcpy(in->field, in->err.msg, len < sizeof in->field ? len : 0);
        in->field[len < sizeof in->field ? len : 0] = '\0';
    }
    return rc;
}
