"""The style sheet of the statistics page."""

STYLE = """
:root{--ink:#1f2933;--soft:#66727f;--line:#dfe4ea;--s0:#2f6fb3;--s1:#d9822b;--s2:#3a9a6b;
--s3:#8a5fb0;--s4:#b8453f;--s5:#7a8794}
*{box-sizing:border-box}
body{font:15px/1.45 system-ui,sans-serif;color:var(--ink);background:#fff;max-width:1160px;
margin:0 auto;padding:24px}
h1{font-size:24px;margin:0}h2{font-size:19px;margin:36px 0 10px;overflow-wrap:anywhere}
h3{font-size:14px;margin:18px 0 4px;color:var(--soft);font-weight:600}
header p,footer{color:var(--soft);margin:4px 0 0;overflow-wrap:anywhere}footer{margin-top:36px}
.tiles{display:flex;flex-wrap:wrap;gap:10px;margin:20px 0}
.tiles div{border:1px solid var(--line);border-radius:8px;padding:10px 16px;min-width:110px}
.tiles b{display:block;font-size:20px;font-variant-numeric:tabular-nums}
.tiles span{color:var(--soft);font-size:13px}
.problems{border-left:4px solid var(--s4);padding-left:14px}.problems h2{margin-top:0}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:13px;font-variant-numeric:tabular-nums}
th{font-weight:600;color:var(--soft);text-align:right;white-space:nowrap}
td{text-align:right;white-space:nowrap}
th,td{padding:4px 8px;border-bottom:1px solid var(--line)}
th:first-child,td:first-child{text-align:left;white-space:normal;overflow-wrap:anywhere;min-width:12em}
.bar{display:block;height:3px;background:var(--s0);margin-left:auto;border-radius:2px}
a{color:var(--s0);text-decoration:none}
svg{display:block;width:100%;height:auto;max-width:860px}
.grid{stroke:var(--line)}.axis,.legend{font:11px system-ui,sans-serif;fill:var(--soft)}
.s0{fill:var(--s0)}.s1{fill:var(--s1)}.s2{fill:var(--s2)}.s3{fill:var(--s3)}.s4{fill:var(--s4)}
.s5{fill:var(--s5)}
dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 14px;font-size:13px;margin:8px 0}
dt{color:var(--soft)}dd{margin:0;font-variant-numeric:tabular-nums}
@media print{body{max-width:none;padding:0;font-size:11px}.topic,svg,tr{break-inside:avoid}
svg{max-width:500px}.wide{overflow:visible}table{font-size:8px}th,td{padding:2px 4px}
h2{margin-top:20px}h2,h3{break-after:avoid}*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
"""
