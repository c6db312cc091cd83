//! The list of rules.

use super::Severity;

macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident $severity:ident;)*) => {
        /// What a module must satisfy.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Rule { $($(#[$doc])* $name,)* }

        impl Rule {
            /// Every rule.
            pub const ALL: &'static [Rule] = &[$(Rule::$name,)*];

            /// Whether breaking it is an error or a warning.
            pub fn severity(self) -> Severity {
                match self { $(Rule::$name => Severity::$severity,)* }
            }
        }
    };
}

rules! {
    /// Shared, extern, texture, surface and sampler globals have no initializer.
    InitializerAllowed Error;
    /// An initializer has the shape of the type and its numbers fit.
    InitializerFits Error;
    /// An address in an initializer is one that the linker can know, of the type that is initialized.
    InitializerAddress Error;
    /// Variables live in global, constant or shared memory.
    GlobalSpace Error;
    /// The alignment of a global is a power of two and at least its type's.
    GlobalAlign Error;
    /// `common` is for global variables without initializer.
    CommonLinkage Error;
    /// Objects are smaller than 2^40 bytes.
    ObjectSize Error;
    /// A kernel returns nothing.
    KernelReturn Error;
    /// A function has `extern` linkage exactly when it has no body, and never `common`.
    FunctionLinkage Error;
    /// Pointer attributes stand on pointers.
    PointerAttribute Error;
    /// The alignment of a parameter is a power of two.
    ParamAlign Error;
    /// `byval` stands on `ptr<param>` in kernels and on generic or local pointers elsewhere.
    Byval Error;
    /// `grid_constant` stands on `byval` parameters of kernels.
    GridConstant Error;
    /// `signext` and `zeroext` stand on integers narrower than 32 bits, one of them at a time.
    Extension Error;
    /// Launch bounds and cluster attributes stand on kernels.
    BoundsOnKernel Error;
    /// Sizes of blocks and clusters are not 0; a block has at most 1024 threads.
    BoundsSize Error;
    /// Launch bounds that exclude or need each other.
    BoundsCombination Error;
    /// Attributes that contradict each other.
    AttributeConflict Error;
    /// The parameters of a kernel fit in 32764 bytes.
    ParamSpace Error;
    /// A signature passes at most 1024 values.
    SignatureSize Error;
    /// The entry block's parameters are the signature's values.
    EntryParams Error;
    /// No branch leads to the entry block.
    EntryBranch Error;
    /// A block ends with a terminator.
    Terminator Error;
    /// Only the last instruction of a block is a terminator.
    TerminatorInside Error;
    /// A branch leads to a block of the function.
    BranchTarget Error;
    /// A branch passes one value of the right type per parameter of its target.
    BranchArgs Error;
    /// A list of operands, parameters or arguments of a target stands in one place.
    OwnList Error;
    /// An operand is defined by a placed block or instruction, or is a constant.
    OperandDefined Error;
    /// A definition dominates its uses.
    Dominance Error;
    /// A constant's bits fit its type.
    ConstantFits Error;
    /// The address of a symbol has the symbol's pointer type, and the symbol exists.
    ConstantAddress Error;
    /// An instruction carries the side data of its shape.
    SideData Error;
    /// An instruction has only the flags that its opcode takes, and one rounding mode at most.
    FlagsAllowed Error;
    /// An instruction has the number of operands that its shape says.
    OperandCount Error;
    /// The controlling type is one that the opcode takes.
    ControllingType Error;
    /// An operand has the type that the shape says.
    OperandType Error;
    /// Results have the types that the shape says.
    ResultType Error;
    /// `relu` and `sat` go with the formats that have them.
    FlagType Error;
    /// The mask of `fclass` has ten bits.
    ClassMask Error;
    /// A conversion's types are of the kinds it converts and have the same lanes.
    ConversionKind Error;
    /// Truncation narrows, extension widens.
    ConversionWidth Error;
    /// A bit cast keeps the size and does not make or take apart pointers.
    BitcastSize Error;
    /// An address-space cast is between generic and another space that has generic addresses.
    SpaceCast Error;
    /// A select's condition is `i1`, or a vector of `i1` with the lanes of what it selects.
    SelectCondition Error;
    /// A constant lane number is below the number of lanes.
    LaneRange Warning;
    /// A shuffle's lane numbers are below twice the number of lanes.
    ShuffleMask Error;
    /// A load or store goes to memory that it can reach.
    AccessSpace Error;
    /// Constant memory and kernel parameters are not written.
    ReadOnlySpace Error;
    /// The alignment of an access is at most 2^30.
    AccessAlign Error;
    /// A load does not release, a store does not acquire.
    AccessOrder Error;
    /// An ordered access is of a scalar of 8 to 128 bits with natural alignment.
    OrderedType Error;
    /// A scope stands on ordered accesses.
    AccessScope Error;
    /// `invariant` stands on plain loads.
    Invariant Error;
    /// A cache operator is one of loads or of stores and stands on plain accesses.
    CacheOperator Error;
    /// Eviction priorities, prefetch sizes and policies go with global or generic addresses and without cache operator.
    CacheHint Error;
    /// An atomic operation works on types that it can.
    AtomicType Error;
    /// Atomics work on global, shared or generic memory.
    AtomicSpace Error;
    /// Atomics are naturally aligned.
    AtomicAlign Error;
    /// The order of a failed exchange does not release.
    FailureOrder Error;
    /// A fence acquires, releases or both.
    FenceOrder Error;
    /// Alignments of block copies are powers of two.
    CopyAlign Error;
    /// `gep` has an index, and steps through arrays by integers.
    GepIndex Error;
    /// `gep` selects a struct's field by a constant in range.
    GepField Error;
    /// `alloca` stands in the entry block.
    AllocaPlace Error;
    /// `alloca` makes at least one element, with an alignment that is a power of two.
    AllocaShape Error;
    /// `isspace` asks about a generic address and a space that has generic addresses.
    SpaceQuery Error;
    /// The cases of a switch are different and fit its type.
    SwitchCases Error;
    /// Kernels are launched, not called.
    CallKernel Error;
    /// A constant barrier number is below 16, a constant thread count a positive multiple of 32.
    BarrierNumber Error;
    /// Values move between threads if they are at most 64 bits wide.
    LaneType Error;
    /// A source location's file is in the module's table.
    LocationFile Error;
    /// A target operation is in the instruction table and its operands fit.
    TargetForm Error;
    /// A target operation's operand list names every argument and every result.
    TargetOperands Error;
    /// A body keeps what `nonconvergent`, `readnone`, `readonly` and `noreturn` of its function promise.
    Promise Warning;
    /// An `aligned` barrier is executed by all threads of a warp together.
    AlignedBarrier Warning;
}
