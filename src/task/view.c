/* view.c - the tasks of a SQLite store as a table with delayqueue's columns. */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "task/inner.h"

#define DATA(member)   "json_extract(j.data,'$." member "')"
#define TIME(column)   "strftime('%Y-%m-%d %H:%M:%f',nullif(" column ",0)/1000.0,'unixepoch')"
/* The form that weir__task_handle() gives a result; any other result is the handler's own. */
#define OURS           "json_type(j.result,'$.ip')='text'"

static const char head[] = "CREATE TEMP VIEW ";
static const char body[] =
    " AS SELECT\n"
    "  " DATA("task") " AS TASK_ID,\n"
    "  " DATA("relative_id") " AS RELATIVE_ID,\n"
    "  " DATA("classifier") " AS CLASSIFIER,\n"
    "  " DATA("name") " AS TASK_NAME,\n"
    "  substr(t.name,1,instr(t.name||'@','@')-1) AS TASK_SERVICE,\n"
    "  CASE WHEN j.state<=2 THEN '\u5f85\u8fd0\u884c' WHEN j.state=3 THEN '\u8fd0\u884c\u4e2d'\n"
    "    WHEN j.state=4 THEN '\u5df2\u5b8c\u6210' WHEN j.state=6 THEN '\u5df2\u53d6\u6d88'\n"
    "    WHEN j.error='TTL exceeded' AND j.ttl_ms>0 AND\n"
    "      coalesce(json_extract(j.\"values\",'$.task_failed'),0)<>j.delivery\n"
    "      THEN '\u5df2\u8d85\u65f6'\n"
    "    ELSE '\u5df2\u5931\u8d25' END AS STATE,\n"
    "  " TIME("j.promote_at") " AS RUN_AT,\n"
    "  (j.ttl_ms+999)/1000 AS TIMEOUT,\n"
    "  " TIME("j.started_at") " AS START_TIME,\n"
    "  CASE WHEN j.state>3 THEN " TIME("coalesce(nullif(j.finished_at,0),j.failed_at)")
    " END AS END_TIME,\n"
    "  CASE WHEN j.state=4 THEN CASE WHEN " OURS " THEN json_extract(j.result,'$.result_state')\n"
    "    END WHEN j.state=5 THEN j.error\n"
    "    ELSE json_extract(j.\"values\",'$.result_state') END AS RESULT_STATE,\n"
    "  " DATA("result_store") " AS RESULT_STORE,\n"
    "  CASE WHEN " OURS " THEN j.result->'$.result' ELSE j.result END AS RESULT,\n"
    "  substr(j.worker,1,instr(j.worker||':',':')-1) AS HOSTNAME,\n"
    "  CASE WHEN " OURS " THEN json_extract(j.result,'$.ip') END AS CLIENT_IP,\n"
    "  j.data->'$.attachment' AS ATTACHMENT,\n"
    "  " DATA("var1") " AS VAR1,\n"
    "  " DATA("var2") " AS VAR2,\n"
    "  " DATA("var3") " AS VAR3,\n"
    "  " DATA("schedule") "||CASE WHEN " DATA("zone") "='UTC' THEN '' ELSE\n"
    "    ' TZ='||" DATA("zone") " END AS SCHEDULED,\n"
    "  " TIME("j.created_at") " AS CREATE_TIME,\n"
    "  coalesce(" DATA("version") ",0) AS VERSION_NUMBER\n"
    "FROM job j JOIN type t ON t.id=j.type\n"
    "WHERE j.search_keys='index' AND json_type(j.data,'$.task')='text';\n";

weir_code weir_task_view(const char *name, char **out, weir_error *err)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    weir_buf          b = { 0 };
    *out = NULL;
    if (!name)
        name = "t_delay_task";
    size_t len = strlen(name);
    if (!len || len > WEIR_MAX_TASK_TEXT || strspn(name, letters) != len ||
        (*name >= '0' && *name <= '9'))
        return weir__fail_field(err, WEIR_EINVAL, "name", "expected letters, digits and \"_\", a "
                                "letter first, at most %d (WEIR_MAX_TASK_TEXT)",
                                WEIR_MAX_TASK_TEXT);
    weir__buf_str(&b, head);
    weir__buf_str(&b, name);
    weir__buf_str(&b, body);
    *out = weir__buf_steal(&b, NULL);
    return *out ? WEIR_OK : weir_fail(err, WEIR_ENOMEM, "task: out of memory");
}
