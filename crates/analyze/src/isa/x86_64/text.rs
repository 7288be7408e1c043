//! Instructions as text.

use std::collections::BTreeMap;

use iced_x86::{
    FlowControl, Formatter, FormatterOutput, FormatterTextKind, GasFormatter, Instruction, SymbolResolver,
    SymbolResult,
};
use plumb_profile::Address;

use super::MachineInstruction;

/// Formats instructions as GNU tools do.
pub(crate) struct Writer {
    formatter: GasFormatter,
}

impl Writer {
    /// Creates a formatter that prints these names instead of addresses.
    pub fn new(names: &BTreeMap<Address, String>) -> Self {
        let resolver: Box<dyn SymbolResolver> = Box::new(Names(names.clone()));
        let mut formatter = GasFormatter::with_options(Some(resolver), None);
        let options = formatter.options_mut();
        options.set_uppercase_hex(false);
        options.set_branch_leading_zeros(false);
        options.set_show_branch_size(false);
        options.set_rip_relative_addresses(true);
        options.set_small_hex_numbers_in_decimal(false);
        Self { formatter }
    }

    /// Formats an instruction.
    pub fn text(&mut self, instruction: &MachineInstruction) -> String {
        let mut text = String::new();
        self.formatter.format(&instruction.0, &mut Plain(&mut text));
        text
    }
}

/// Output as plain text, without markup.
struct Plain<'t>(&'t mut String);

impl FormatterOutput for Plain<'_> {
    fn write(&mut self, text: &str, _: FormatterTextKind) {
        self.0.push_str(text);
    }
}

struct Names(BTreeMap<Address, String>);

impl SymbolResolver for Names {
    fn symbol(
        &mut self,
        instruction: &Instruction,
        _operand: u32,
        _instruction_operand: Option<u32>,
        address: u64,
        _address_size: u32,
    ) -> Option<SymbolResult<'_>> {
        // An immediate that happens to equal a known address is still a number.
        let is_address = instruction.is_ip_rel_memory_operand()
            || matches!(
                instruction.flow_control(),
                FlowControl::Call | FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch
            );
        let name = self.0.get(&Address(address)).filter(|_| is_address)?;
        Some(SymbolResult::with_str(address, name))
    }
}
