-- The condition that joins a foreign key's table, as p_child, to the one it refers to, as p_parent: with the key's own
-- operators, since only pg_catalog is on the path.
CREATE OR REPLACE FUNCTION reclaim.key_condition(p_key oid, p_parent text, p_child text) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  RETURN (SELECT string_agg(format('%s.%I OPERATOR(%I.%s) %s.%I', p_parent, p.attname, n.nspname, o.oprname, p_child,
      c.attname), ' AND ' ORDER BY pair.place)
    FROM pg_constraint k CROSS JOIN unnest(k.conkey, k.confkey, k.conpfeqop) WITH ORDINALITY AS pair (child, parent, op, place)
    JOIN pg_attribute c ON c.attrelid = k.conrelid AND c.attnum = pair.child
    JOIN pg_attribute p ON p.attrelid = k.confrelid AND p.attnum = pair.parent
    JOIN pg_operator o ON o.oid = pair.op JOIN pg_namespace n ON n.oid = o.oprnamespace
    WHERE k.oid = p_key);
END
$$;
REVOKE ALL ON FUNCTION reclaim.key_condition FROM PUBLIC;
