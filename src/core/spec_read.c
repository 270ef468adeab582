/* spec_read.c - a spec from JSON: with the names of weir_job_json(), except "attempts" (their
 * maximum) and "run_at". */
#include "base/fail.h"
#include "core/fields.h"
#include "core/job.h"
#include "core/job_fields.h"

#define AT(member) offsetof(weir_spec, member)
#define AS_TYPE(member)     weir__as_text, AT(member), .needed = true
#define AS_PRIORITY(member) weir__as_priority, AT(member)
#define AS_COUNT(member)    weir__as_int32, AT(member), .min = 1, .max = WEIR_MAX_ATTEMPTS
#define AS_MS(member)       weir__as_ms, AT(member)
#define AS_MOMENT(member)   weir__as_moment, AT(member)
#define AS_FLAG(member)     weir__as_bool, AT(member)
#define AS_BACKOFF(member)  weir__as_backoff, AT(member)
#define AS_UNIQUE(member)   weir__as_text, AT(member)
#define AS_KEYS(member)     weir__as_text, AT(member)
#define AS_JSON(member)     weir__as_raw, AT(member)
#define AS_VALUES(member)   weir__as_raw, AT(member)
#define ROW(X, shape, member, kind, name) FIELD(name, AS_##kind(member)),
#define FIELD(name, ...) WEIR_FIELD(name, __VA_ARGS__)
const weir_field weir__spec_fields[] = { WEIR_SPEC_FIELDS(ROW, ) { 0 } };
#undef AT
#undef ROW

#define X(member, ...)                                                                            \
    _Static_assert(offsetof(weir_spec, member##_len) == offsetof(weir_spec, member) +             \
                       sizeof(char *), "weir__as_raw() sets both");
WEIR_SPEC_BYTES(X)
#undef X

/* Every member of weir_spec is in the table: what is over is the padding behind the flags. */
#define SIZE(X, shape, member, ...) +sizeof((weir_spec){ 0 }.member) SIZE_##shape(member)
#define SIZE_INT(member)
#define SIZE_TEXT(member)
#define SIZE_BYTES(member) +sizeof((weir_spec){ 0 }.member##_len)
#define SIZE_BACKOFF(member)
_Static_assert((0 WEIR_SPEC_FIELDS(SIZE, ) + sizeof(int64_t) - 1) / sizeof(int64_t) *
                       sizeof(int64_t) == offsetof(weir_spec, reserved),
               "a member of weir_spec is missing in core/job_fields.h");

weir_code weir__read_spec(weir_reader *in, weir_json_piece object, weir_spec *out)
{
    *out = (weir_spec){ 0 };
    weir_code rc = weir__read(in, weir__spec_fields, object, out);
    if (rc)
        return rc;
    if (out->delay_ms && out->run_at) {
        return weir__fail_field(&in->err, WEIR_EINVAL, "run_at", "there is a delay, too; only one "
                                "of them can be given");
    }
    /* Numbers are right by now; the other members have the same names in C and in JSON. */
    return in->shallow ? weir__spec_check_known(out, &in->err)
                       : weir__spec_check(out, -1, &in->err);
}
