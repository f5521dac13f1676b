"""Another solution of 4.1: it computes the clock, transfers and chips that each claim and each test would need."""


def find_impossible(sheet, tests):
    """Solve each claim and each test for the property that it needs, and compare the two with each other and with the card."""
    rounding = 1.015
    tensor_claim = sheet["float16"] / 2 if sheet["float16_sparse"] else sheet["float16"]
    claimed_mhz = {
        "float32": sheet["float32"] * 1e6 / (2 * sheet["sms"] * sheet["cores_per_sm"]),
        "float16": tensor_claim * 1e6 / (2 * sheet["sms"] * sheet["tensor_fma_per_clock"]),
        "bandwidth": sheet["bandwidth"] * 1e3 * 8 / sheet["bus_bits"] / 2,
    }
    for figure, mhz in claimed_mhz.items():
        if mhz > rounding * sheet["memory_mhz" if figure == "bandwidth" else "boost_mhz"]:
            return figure
    claims = {**sheet, "float16": tensor_claim}
    for test in tests:
        if test["work"] == "product" and not test["tf32"]:
            fewest_ms = 2e-9 * test["n"] ** 3 / claims[test["format"]]
            if test["ms"] * rounding < fewest_ms:
                return test["format"]
        if (
            test["work"] == "copy"
            and test["mb"] > sheet["l2_mb"]
            and test["ms"] * rounding < 2 * test["mb"] / sheet["bandwidth"]
        ):
            return "bandwidth"
    per_bit = sheet["memory"] / sheet["bus_bits"] * 32
    return None if per_bit in (1, 2, 3, 4, 6) else "memory"
