"""A table of schema reclaim is written by one folder, in its C statements and its SQL functions alike.

OTHERS lists who else writes a table, what they do there, and why it cannot be the owner: mostly since a customer's change
is one transaction with all its consequences.
"""

import re

OWNERS = {
    "access_keys": "credentials",
    "address_cooldowns": "customers",
    "auth_cleanup_events": "recovery",
    "auth_cleanup_log": "recovery",
    "auth_cleanup_reasons": "recovery",
    "billing_accounts": "billing",
    "billing_adjustments": "billing",
    "billing_charges": "billing",
    "billing_freezes": "billing",
    "billing_subscriptions": "billing",
    "call_calls": "calls",
    "cascade_participants": "erasure",
    "cascade_receipts": "erasure",
    "column_decisions": "customers",
    "console_sessions": "console",
    "customer_customers": "customers",
    "customer_frozen": "customers",
    "customer_log": "customers",
    "customer_mails": "customers",
    "customer_pending": "customers",
    "customer_told": "customers",
    "customer_transitions": "customers",
    "customer_members": "customers",
    "erasure_certificates": "erasure",
    "erased_before": "erasure",
    "erasure_kept": "erasure",
    "erasure_late": "erasure",
    "erasure_users": "erasure",
    "erasures": "erasure",
    "event_outbox": "events",
    "event_returns": "events",
    "gate_ended": "gate",
    "installation": "server",
    "instances": "console",
    "key_sets": "credentials",
    "journal_lines": "erasure",
    "mailbox": "mail",
    "rate_limit_tiers": "limits",
    "rate_limits": "limits",
    "reminders": "customers",
    "receipt_facts": "erasure",
    "schema_functions": "pg",
    "schema_migrations": "pg",
    "sealed_heads": "proof",
    "sealed_leaves": "proof",
    "sealed_sources": "proof",
    "sessions": "customers",
    "sign_in_codes": "customers",
    "sign_in_networks": "customers",
    "storage_checks": "erasure",
    "switches": "calls",
    "verification_codes": "recovery",
    "work_items": "work",
}

OTHERS = {
    ("access_keys", "erasure"): ({"UPDATE"}, "after a restore keys end that had ended since the backup"),
    ("address_cooldowns", "erasure"): ({"INSERT", "UPDATE"}, "a replay begins cool-downs again with what the journal has of addresses"),
    ("console_sessions", "erasure"): ({"UPDATE"}, "after a restore sessions end that had ended since the backup"),
    ("customer_customers", "erasure"): ({"UPDATE"}, "a replay lifts legal holds that were lifted since the backup, and moves deletions that are near"),
    ("customer_log", "erasure"): ({"INSERT"}, "a replayed erasure of a customer that the backup does not have is audited"),
    ("gate_ended", "erasure"): ({"INSERT"}, "gates drop what they know of customers that were erased before a restore"),
    ("installation", "erasure"): ({"UPDATE"}, "a restore is noticed and ends with the replay, which raises the epoch"),
    ("sealed_sources", "erasure"): ({"UPDATE"}, "marks are transaction numbers, which a restored cluster counts anew"),
    ("sessions", "erasure"): ({"DELETE"}, "after a restore sessions end that had ended since the backup"),
    ("sign_in_codes", "erasure"): ({"DELETE"}, "after a restore codes end"),
    ("verification_codes", "erasure"): ({"DELETE"}, "after a restore codes end"),
    ("access_keys", "gate"): ({"UPDATE"}, "when a key was last used is known where it is used"),
    ("customer_customers", "calls"): ({"UPDATE"}, "the layer notes when it has a freeze"),
    ("customer_customers", "gate"): ({"UPDATE"}, "the layer notes when it has a freeze"),
    ("customer_log", "billing"): ({"INSERT"}, "an audit row belongs to the transaction it is about"),
    ("customer_log", "console"): ({"INSERT"}, "an audit row belongs to the transaction it is about"),
    ("customer_log", "credentials"): ({"INSERT"}, "an audit row belongs to the transaction it is about"),
    ("customer_log", "sandbox"): ({"INSERT"}, "an audit row belongs to what moves the clock"),
    ("customer_mails", "recovery"): ({"INSERT"}, "what became of all mails is recorded in one statement"),
    ("event_outbox", "customers"): ({"INSERT"}, "a change and its event are one transaction"),
    ("event_outbox", "erasure"): ({"INSERT", "UPDATE"}, "a redrive, or a participant added with --past, has the deletion published again"),
    ("gate_ended", "credentials"): ({"INSERT"}, "what ends a key or a session tells every gate, whoever ends it"),
    ("gate_ended", "customers"): ({"INSERT"}, "a customer or member that is gone is told to every gate in its transaction"),
    ("installation", "cli"): ({"UPDATE"}, "an operator rotates the key of certificates"),
    ("installation", "customers"): ({"UPDATE"}, "an expiry pass records until when it has deleted"),
    ("installation", "sandbox"): ({"UPDATE"}, "the clock is a column of the installation"),
    ("mailbox", "customers"): ({"DELETE"}, "a deletion leaves no mail of the customer"),
    ("reminders", "sandbox"): ({"DELETE"}, "a clock that is set back forgets reminders that are not due any more"),
    ("work_items", "calls"): ({"INSERT", "UPDATE"}, "a hang-up of many customers, or at another's switch, becomes items of its own"),
    ("work_items", "erasure"): ({"INSERT", "DELETE"}, "objects in Supabase Storage are queued by one statement; a replay drops mails from before the backup, and queues those about new dates"),
    ("work_items", "customers"): ({"INSERT", "UPDATE", "DELETE"}, "work for many customers is one statement; a redrive revives theirs"),
}

WRITE = re.compile(r"\b(insert\s+into|update|delete\s+from)\s+reclaim\.(\w+)", re.I)


def statements(path, text):
    """The text with comments gone and C strings that follow each other made one."""
    if path.endswith(".sql"):
        return re.sub(r"--[^\n]*", "", text)
    return re.sub(r'"\s*"', "", re.sub(r"/\*.*?\*/", "", text, flags=re.S))


def check(tree):
    used = set()
    for path, text in tree.matching(r"src/[^/]+/.*\.[ch]|sql/functions/[^/]+/.*\.sql"):
        folder = path.split("/")[1 if path.startswith("src/") else 2]
        for verb, table in WRITE.findall(statements(path, text)):
            verb = verb.split()[0].upper()
            allowed, _ = OTHERS.get((table, folder), (set(), ""))
            used.add((table, folder))
            if table not in OWNERS:
                yield f"{path}: reclaim.{table} has no owner in tools/lint/house/tables_have_one_writer.py"
            elif OWNERS[table] != folder and verb not in allowed:
                yield f"{path}: {verb} on reclaim.{table}, which src/{OWNERS[table]} writes"
    if "sql/triggers.sql" in tree.files:
        for table, folder in sorted(set(OTHERS) - used):
            yield f"tools/lint/house/tables_have_one_writer.py: {folder} no longer writes reclaim.{table}"


broken = [
    {"src/calls/end.c": '"UPDATE reclaim.verification_codes SET tries = 0"'},
    {"src/calls/end.c": '"WITH done AS (DELETE FROM"\n    " reclaim.work_items) SELECT 1"'},
    {"sql/functions/calls/calls_end.sql": "INSERT INTO reclaim.billing_charges SELECT 1"},
    {"src/billing/charge.c": '"DELETE FROM reclaim.customer_log"'},
    {"src/limits/store.c": '"insert into reclaim.novelties values (1)"'},
    {"sql/triggers.sql": "", "src/gate/gate.c": ""},
]
sound = [
    {
        "src/work/work.c": '"INSERT INTO reclaim.work_items"',
        "sql/functions/billing/f.sql": "-- Not UPDATE reclaim.call_calls.\nINSERT INTO reclaim.customer_log SELECT 1",
        "src/cli/doctor.c": '"SELECT FROM reclaim.erasures"',
        "sql/tests/calls.sql": "DELETE FROM reclaim.mailbox",
    }
]
