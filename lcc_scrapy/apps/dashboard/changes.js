"use strict";
(() => {
  const place = document.getElementById("changes");
  const state = document.getElementById("live");
  const rows = place.querySelector("tbody");
  const labels = Array.from(place.querySelectorAll("th"), (one) => one.textContent);
  const source = new EventSource("/dashboard/changes/events?after=" + place.dataset.after);

  function cell(row, label, text, href) {
    const made = document.createElement("td");
    made.dataset.l = label;
    let inside = made;
    if (href) {
      inside = document.createElement("a");
      inside.href = href;
      made.append(inside);
    }
    inside.textContent = text;
    row.append(made);
    return made;
  }

  source.addEventListener("open", () => { state.textContent = "New changes appear as they happen."; });
  source.addEventListener("error", () => { state.textContent = "Not connected: reload to see what is new."; });
  source.addEventListener("skipped", () => { state.textContent = "Too many changes to show all of them."; });
  source.addEventListener("message", (event) => {
    const told = JSON.parse(event.data);
    const row = document.createElement("tr");
    cell(row, labels[0], told.seq).className = "n";
    cell(row, labels[1], told.at);
    cell(row, labels[2], told.what);
    cell(row, labels[3], told.pid, "/dashboard/providers/" + Number(told.pid));
    cell(row, labels[4], told.url, "/dashboard/urls?url=" + encodeURIComponent(told.docid));
    rows.prepend(row);
    while (rows.children.length > Number(place.dataset.most)) rows.lastElementChild.remove();
  });
})();
