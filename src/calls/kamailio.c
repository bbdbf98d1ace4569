/* Kamailio, by its JSON-RPC: its dialog module finds and ends dialogs, its tm module cancels ringing calls. */
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/metrics.h"
#include "calls/switch.h"

#define PATIENCE_NS (3 * NS_PER_S)
#define BODY_MAX 4096

METRIC_COUNTER(asked, "reclaim_switch_requests_total", "Requests to the switch, by command and result.", "wish",
               "answer");

static const char *const headers[] = {"Content-Type: application/json", NULL};
static const char *const command_names[] = {"look", "cancel", "hang_up"};
static const char *const result_names[] = {"told", "gone", "rings", "talks", "failed"};

static void begin_request(struct json_writer *w, const char *method)
{
    json_open(w, '{');
    json_key(w, "jsonrpc");
    json_str(w, STR("2.0"));
    json_key(w, "id");
    json_i64(w, 1);
    json_key(w, "method");
    json_str(w, str_of(method));
    json_key(w, "params");
    json_open(w, '[');
}

static void end_request(struct json_writer *w)
{
    json_close(w, ']');
    json_close(w, '}');
}

static void write_command(const struct switch_request *request, struct buf *out)
{
    static const char *const methods[] = {"dlg.dlg_list", "tm.cancel", "dlg.terminate_dlg"};
    struct json_writer w = json_to(out);
    begin_request(&w, methods[request->command]);
    json_str(&w, str_of(request->call_id));
    if (request->command == SWITCH_CANCEL) {
        char cseq[24];
        struct buf number = buf_over(cseq, sizeof cseq);
        buf_addf(&number, "%lld", (long long)request->cseq);
        json_str(&w, buf_str(&number));
    } else if (*request->from_tag || request->command == SWITCH_HANG_UP) {
        json_str(&w, str_of(request->from_tag));
    }
    if (request->command == SWITCH_HANG_UP)
        json_str(&w, str_of(request->to_tag));
    end_request(&w);
}

/* A dialog as the dialog module describes it; {} for one that it does not know. */
static enum switch_result read_dialog(struct switch_request *request, const json_t *dialog)
{
    const json_t *state = json_object_get(dialog, "state");
    if (!json_is_object(dialog) || (!state && json_object_size(dialog) > 0))
        return SWITCH_FAILED;
    if (!state)
        return SWITCH_GONE;
    struct str tag, cseq;
    if (!json_get_str(json_object_get(dialog, "callee"), "tag", &tag) &&
        str_copy(tag, request->to_tag, sizeof request->to_tag))
        request->to_tag[0] = 0;
    if (!json_get_str(json_object_get(dialog, "caller"), "cseq", &cseq) && !request->cseq &&
        str_to_i64(cseq, 1, UINT32_MAX, &request->cseq))
        request->cseq = 0;
    switch (json_integer_value(state)) {
    case 1: /* no reply yet */
    case 2:
        return SWITCH_RINGING;
    case 3: /* not acknowledged yet */
    case 4:
        return SWITCH_ANSWERED;
    case 5:
        return SWITCH_GONE;
    default:
        return SWITCH_FAILED;
    }
}

/* Kamailio answers an error when the call to cancel or hang up has ended already; that is accepted, and the next query
 * shows it. */
static enum switch_result read_answer(struct switch_request *request)
{
    AUTO(json) json_t *root = request->call.err ? NULL : json_read_object(request->call.answer, NULL);
    const json_t *result = json_object_get(root, "result"), *error = json_object_get(root, "error");
    struct str version;
    if (!root || json_get_str(root, "jsonrpc", &version) || !str_eq(version, STR("2.0")) ||
        json_integer_value(json_object_get(root, "id")) != 1 || (!result && !json_is_object(error)))
        return SWITCH_FAILED;
    if (request->command != SWITCH_QUERY)
        return SWITCH_ACCEPTED;
    if (!result)
        return json_integer_value(json_object_get(error, "code")) == 404 ? SWITCH_GONE : SWITCH_FAILED;
    return read_dialog(request, result);
}

static void call_done(struct client_call *call)
{
    struct switch_request *request = OWNER_OF(call, struct switch_request, call);
    request->result = read_answer(request);
    buf_free(&request->body);
    counter_add(&asked, 1, command_names[request->command], result_names[request->result]);
    request->done(request);
}

static void send_to_kamailio(const struct phone_switch *at, struct client *client, struct switch_request *request)
{
    request->body = buf_new(BODY_MAX);
    write_command(request, &request->body);
    struct str body = buf_str(&request->body);
    request->call =
        (struct client_call){.url = body.at ? at->url : "", /* no memory: an empty URL makes the request fail */
                             .headers = headers,
                             .body = body,
                             .limit_ns = PATIENCE_NS,
                             .done = call_done};
    client_send(client, &request->call);
}

static void cancel(struct client *client, struct switch_request *request)
{
    client_cancel(client, &request->call);
    buf_free(&request->body);
}

struct phone_switch kamailio(const char *name, const char *url)
{
    return (struct phone_switch){.name = name, .url = url, .send = send_to_kamailio, .cancel = cancel};
}

struct version_request {
    struct client_call call;
    bool done;
    enum err err;
    char version[128];
};

static void version_received(struct client_call *call)
{
    struct version_request *g = OWNER_OF(call, struct version_request, call);
    AUTO(json) json_t *root = call->err ? NULL : json_read_object(call->answer, NULL);
    struct str version;
    g->done = true;
    g->err = call->err ? call->err : !root ? ERR_INPUT : json_get_str(root, "result", &version);
    if (!g->err && str_copy(str_trim(version), g->version, sizeof g->version))
        g->err = ERR_INPUT;
}

enum err kamailio_version(const char *url, int64_t deadline_ns, char ret[128], struct why *why)
{
    struct client *client = client_new(&(struct client_config){.connections_max = 1});
    if (!client)
        return why_set(why, ERR_MEMORY, "no memory to ask the switch");
    AUTO(buf) struct buf body = buf_new(BODY_MAX);
    struct json_writer w = json_to(&body);
    begin_request(&w, "core.version");
    end_request(&w);
    struct version_request g = {0};
    g.call = (struct client_call){.url = url,
                                  .headers = headers,
                                  .body = buf_str(&body),
                                  .limit_ns = deadline_ns - clock_ns(),
                                  .done = version_received};
    client_send(client, &g.call);
    while (!g.done)
        client_turn(client, deadline_ns);
    client_free(client);
    if (g.err == ERR_INPUT || g.err == ERR_MISSING)
        return why_set(why, g.err, "what answers there is not Kamailio's JSON-RPC");
    if (g.err)
        return why_set(why, g.err, "it cannot be reached (%s)", err_name(g.err));
    memcpy(ret, g.version, sizeof g.version);
    return OK;
}
