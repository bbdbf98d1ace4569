/* Kamailio, by its JSON-RPC: dialogs are looked up and ended by the dialog module, ringing calls cancelled by tm. */
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/metrics.h"
#include "calls/switch.h"

#define PATIENCE_NS (3 * NS_PER_S)
#define BODY_MAX 4096

METRIC_COUNTER(asked, "reclaim_switch_requests_total", "What the switch was asked, by how it answered.", "wish",
               "answer");

static const char *const headers[] = {"Content-Type: application/json", NULL};
static const char *const wish_names[] = {"look", "cancel", "hang_up"};
static const char *const answer_names[] = {"told", "gone", "rings", "talks", "failed"};

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

static void write_wish(const struct switch_ask *ask, struct buf *out)
{
    static const char *const methods[] = {"dlg.dlg_list", "tm.cancel", "dlg.terminate_dlg"};
    struct json_writer w = json_to(out);
    begin_request(&w, methods[ask->wish]);
    json_str(&w, str_of(ask->call_id));
    if (ask->wish == SWITCH_CANCEL) {
        char cseq[24];
        struct buf number = buf_over(cseq, sizeof cseq);
        buf_addf(&number, "%lld", (long long)ask->cseq);
        json_str(&w, buf_str(&number));
    } else if (*ask->from_tag || ask->wish == SWITCH_HANG_UP) {
        json_str(&w, str_of(ask->from_tag));
    }
    if (ask->wish == SWITCH_HANG_UP)
        json_str(&w, str_of(ask->to_tag));
    end_request(&w);
}

/* What the dialog module tells of a dialog; it says {} of one that it does not know. */
static enum switch_answer read_dialog(struct switch_ask *ask, const json_t *dialog)
{
    const json_t *state = json_object_get(dialog, "state");
    if (!json_is_object(dialog) || (!state && json_object_size(dialog) > 0))
        return SWITCH_FAILED;
    if (!state)
        return SWITCH_GONE;
    struct str tag, cseq;
    if (!json_get_str(json_object_get(dialog, "callee"), "tag", &tag) && str_copy(tag, ask->to_tag, sizeof ask->to_tag))
        ask->to_tag[0] = 0;
    if (!json_get_str(json_object_get(dialog, "caller"), "cseq", &cseq) && !ask->cseq &&
        str_to_i64(cseq, 1, UINT32_MAX, &ask->cseq))
        ask->cseq = 0;
    switch (json_integer_value(state)) {
    case 1: /* no reply yet */
    case 2:
        return SWITCH_RINGS;
    case 3: /* not acknowledged yet */
    case 4:
        return SWITCH_TALKS;
    case 5:
        return SWITCH_GONE;
    default:
        return SWITCH_FAILED;
    }
}

/* To cancel or hang up what is gone already is an error to Kamailio, but not to us: the next look tells. */
static enum switch_answer read_answer(struct switch_ask *ask)
{
    AUTO(json) json_t *root = ask->call.err ? NULL : json_read_object(ask->call.answer, NULL);
    const json_t *result = json_object_get(root, "result"), *error = json_object_get(root, "error");
    struct str version;
    if (!root || json_get_str(root, "jsonrpc", &version) || !str_eq(version, STR("2.0")) ||
        json_integer_value(json_object_get(root, "id")) != 1 || (!result && !json_is_object(error)))
        return SWITCH_FAILED;
    if (ask->wish != SWITCH_LOOK)
        return SWITCH_TOLD;
    if (!result)
        return json_integer_value(json_object_get(error, "code")) == 404 ? SWITCH_GONE : SWITCH_FAILED;
    return read_dialog(ask, result);
}

static void answered(struct client_call *call)
{
    struct switch_ask *ask = OWNER_OF(call, struct switch_ask, call);
    ask->answer = read_answer(ask);
    buf_free(&ask->body);
    counter_add(&asked, 1, wish_names[ask->wish], answer_names[ask->answer]);
    ask->done(ask);
}

static void ask_kamailio(const struct phone_switch *at, struct client *client, struct switch_ask *ask)
{
    ask->body = buf_new(BODY_MAX);
    write_wish(ask, &ask->body);
    struct str body = buf_str(&ask->body);
    ask->call = (struct client_call){.url = body.at ? at->url : "", /* not to be asked: it fails */
                                     .headers = headers,
                                     .body = body,
                                     .patience_ns = PATIENCE_NS,
                                     .done = answered};
    client_send(client, &ask->call);
}

static void forget(struct client *client, struct switch_ask *ask)
{
    client_cancel(client, &ask->call);
    buf_free(&ask->body);
}

struct phone_switch kamailio(const char *url)
{
    return (struct phone_switch){.name = "kamailio", .url = url, .ask = ask_kamailio, .forget = forget};
}

struct greeting {
    struct client_call call;
    bool done;
    enum err err;
    char version[128];
};

static void greeted(struct client_call *call)
{
    struct greeting *g = OWNER_OF(call, struct greeting, call);
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
    struct greeting g = {0};
    g.call = (struct client_call){.url = url,
                                  .headers = headers,
                                  .body = buf_str(&body),
                                  .patience_ns = deadline_ns - clock_ns(),
                                  .done = greeted};
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
