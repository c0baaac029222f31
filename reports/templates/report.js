"use strict";

async function copy(element) {
  const text = element.textContent;
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // No clipboard here (an old browser, a page without https) or no permission: select the text and copy that.
    const selection = getSelection();
    selection.selectAllChildren(element);
    const copied = document.execCommand("copy");
    if (copied) selection.removeAllRanges();
    return copied;
  }
}

for (const button of document.querySelectorAll("button.copy")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const copied = await copy(document.getElementById(button.dataset.copies));
    button.textContent = copied ? "✓ Copied" : "Press Ctrl+C";
    document.getElementById("status").textContent = copied
      ? "The replay command is copied."
      : "The replay command is selected. Press Ctrl+C to copy it.";
    setTimeout(() => {
      button.textContent = "Copy";
      document.getElementById("status").textContent = "";
    }, 3000);
  });
}

for (const svg of document.querySelectorAll("svg.backing")) {
  const readout = svg.closest("dd").querySelector(".readout");
  const first = readout.textContent;
  svg.addEventListener("pointerover", (event) => {
    const title = event.target.querySelector(":scope > title");
    readout.textContent = title ? title.textContent : first;
  });
  svg.addEventListener("pointerleave", () => {
    readout.textContent = first;
  });
}

// What scrolls can be reached by Tab and says what it is; what fits is no stop on the way.
const observer = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (target.scrollWidth > target.clientWidth) {
      target.tabIndex = 0;
      target.setAttribute("role", "region");
      target.setAttribute("aria-label", target.dataset.name);
    } else {
      for (const name of ["tabindex", "role", "aria-label"]) target.removeAttribute(name);
    }
  }
});
document.querySelectorAll(".scroll").forEach((element) => observer.observe(element));
