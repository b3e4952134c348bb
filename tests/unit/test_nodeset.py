from wulf.base.nodeset import fold_reasons, impersonal, reasons_text


def test_reasons_that_differ_in_the_node_only_are_one():
    reasons = {
        f"n{k:02}": f"n{k:02}: ssh: Could not resolve hostname n{k:02}: Name not known" for k in range(1, 9)
    }
    reasons["n9"] = "n9: ssh: connect to host 10.0.0.9 port 22: No route to host"
    assert fold_reasons(reasons) == [
        ([f"n{k:02}" for k in range(1, 9)], "ssh: Could not resolve hostname NODE: Name not known"),
        (["n9"], "ssh: connect to host 10.0.0.9 port 22: No route to host"),
    ]
    assert reasons_text(reasons).startswith("n[01-08]: ssh: Could not resolve hostname NODE")


def test_a_name_inside_another_word_is_no_name_of_a_node():
    assert (
        impersonal("n1: n10 and n1.cluster and n1-data refuse n1", ["n1"])
        == "n10 and NODE.cluster and n1-data refuse NODE"
    )
    assert (
        impersonal("Connection to fe80::1:2:3 port 22 at 10:20:30", ["n1"])
        == "Connection to NODE port 22 at 10:20:30"
    )
