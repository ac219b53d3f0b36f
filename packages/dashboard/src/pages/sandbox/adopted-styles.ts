/**
 * Runs a library that creates `<style>` elements, which the content security policy refuses. It gets substitutes whose text goes into
 * adopted style sheets of the document: those are created by script, not by markup, and so are allowed.
 */
export function withAdoptedStyles(work: () => void): void {
  const make = (name: string, options?: ElementCreationOptions): HTMLElement =>
    Document.prototype.createElement.call(document, name, options);
  const replaced = (name: string, options?: ElementCreationOptions): HTMLElement =>
    name.toLowerCase() === 'style' ? standIn(make('data')) : make(name, options);
  // An own property shadows the method of the prototype and is removed afterwards.
  Object.defineProperty(document, 'createElement', { value: replaced, configurable: true });
  try {
    work();
  } finally {
    Reflect.deleteProperty(document, 'createElement');
  }
}

function standIn(element: HTMLElement): HTMLElement {
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  Object.defineProperty(element, 'textContent', {
    get: () => '',
    set(text: string) {
      sheet.replaceSync(text);
    },
  });
  const remove = element.remove.bind(element);
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((other) => other !== sheet);
    remove();
  };
  return element;
}
